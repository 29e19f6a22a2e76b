/** What a resolver gets to work with: the viewer, and the data seen through the viewer's eyes. */

import type { Viewer } from './auth/viewer.ts';
import type { PrismaClient } from './generated/prisma/client.ts';
import type { Follow } from './live.ts';
import { createLoaders, type Loaders } from './loaders.ts';

/** One per operation, since its loaders remember rows. */
export interface Context {
  readonly viewer: Viewer;
  readonly database: PrismaClient;
  readonly loaders: Loaders;
  readonly follow: Follow;
}

export function createContext(database: PrismaClient, viewer: Viewer, follow: Follow): Context {
  return { viewer, database, loaders: createLoaders(), follow };
}
