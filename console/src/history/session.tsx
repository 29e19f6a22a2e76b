/** Session. */

import { View } from '../parts/view.tsx';

export function Session() {
  return (
    <View title="Session" sources={[]}>
      <p />
    </View>
  );
}
