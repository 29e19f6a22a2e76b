/** Lock. */

import { View } from '../parts/view.tsx';

export function Lock() {
  return (
    <View title="Lock" sources={[]}>
      <p />
    </View>
  );
}
