/** Rejects an operation beyond the scope of its token, before anything of it runs. */

import { allows } from '../../auth/scopes.ts';
import { beyondScope } from '../../errors.ts';
import type { GatewayPlugin } from '../context.ts';
import { beforeExecution } from './beforeExecution.ts';

export const useScopes = (): GatewayPlugin =>
  beforeExecution(({ viewer, progress: { operation } }) =>
    operation && viewer && !allows(viewer.scope, operation.scope)
      ? [beyondScope(operation.scope, viewer.tokenId === undefined)]
      : [],
  );
