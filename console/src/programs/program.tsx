/** Program. */

import { View } from '../parts/view.tsx';

export function Program() {
  return (
    <View title="Program" sources={[]}>
      <p />
    </View>
  );
}
