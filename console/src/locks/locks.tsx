/** Locks. */

import { View } from '../parts/view.tsx';

export function Locks() {
  return (
    <View title="Locks" sources={[]}>
      <p />
    </View>
  );
}
