/** What a resolver gets to work with: the viewer, and the data seen through the viewer's eyes. */

import type { Viewer } from './auth/viewer.ts';
import type { PrismaClient } from './generated/prisma/client.ts';
import { createLoaders, type Loaders } from './loaders.ts';

export interface Context {
  readonly viewer: Viewer;
  readonly database: PrismaClient;
  readonly loaders: Loaders;
}

/** A fresh context per operation: its loaders remember rows, and must not outlive the operation. */
export function createContext(database: PrismaClient, viewer: Viewer): Context {
  return { viewer, database, loaders: createLoaders() };
}
