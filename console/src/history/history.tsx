/** History. */

import { View } from '../parts/view.tsx';

export function History() {
  return (
    <View title="History" sources={[]}>
      <p />
    </View>
  );
}
