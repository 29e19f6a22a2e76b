/** Operations that run again are compiled: most requests of a client repeat a few operations. */

import type { Extension } from '../../extensionPoints.ts';

export const compiler: Extension = {
  settings: {},
  open: () => ({
    // Loaded by the first operation that comes again: a gateway that is asked little needs no compiler.
    compile: async (schema, document) => (await import('./compile.ts')).compile(schema, document),
  }),
};
