/** Operations that run again are compiled: most requests of a client repeat a few operations. */

import type { Extension } from '../../extensionPoints.ts';

export const compiler: Extension = {
  settings: {},
  async open() {
    const { compile } = await import('./compile.ts');
    return { compile };
  },
};
