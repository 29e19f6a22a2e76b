/** `/graphql` as a subgraph of a supergraph (Apollo Federation 2). */

import { onOffSetting } from '../../config/setting.ts';
import type { Extension } from '../../extensionPoints.ts';

const settings = {
  FEDERATION: onOffSetting(
    'whether /graphql is a subgraph of a supergraph as well (Apollo Federation 2)',
    'off',
  ),
};

export const federation: Extension<typeof settings> = {
  settings,
  async schema({ FEDERATION, INTROSPECTION }) {
    if (FEDERATION === 'off') return undefined;
    const { createSubgraph } = await import('./subgraph.ts');
    return createSubgraph(INTROSPECTION === 'on');
  },
};
