/** Rejects an operation beyond the scope of its token, before anything of it runs. */

import { allows } from '../../auth/scopes.ts';
import { beyondScope } from '../../errors.ts';
import type { GatewayPlugin } from '../context.ts';

export const useScopes = (): GatewayPlugin => ({
  onParse({ context: { viewer, progress } }) {
    const { operation } = progress;
    if (operation && viewer && !allows(viewer.scope, operation.scope))
      throw beyondScope(operation.scope, viewer.tokenId === undefined);
  },
});
