/** Programs. */

import { View } from '../parts/view.tsx';

export function Programs() {
  return (
    <View title="Programs" sources={[]}>
      <p />
    </View>
  );
}
