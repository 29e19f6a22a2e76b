/** What a resolver gets to work with: the viewer, and the data seen through the viewer's eyes. */

import type { Viewer } from './auth/viewer.ts';
import type { PrismaClient } from './generated/prisma/client.ts';
import { createLoaders, type Loaders } from './loaders.ts';

/** Where the viewer's account lives, for a gateway that mirrors it. */
export interface UpstreamAccount {
  /**
   * Activates a template there; undefined for a viewer whose account lives here.
   * @throws a client error when it refuses, or cannot be used.
   */
  activate(viewer: Viewer, templateId: number): Promise<{ scheduleTypeChanged: boolean } | undefined>;
}

export interface Context {
  readonly viewer: Viewer;
  readonly database: PrismaClient;
  readonly loaders: Loaders;
  readonly upstream: UpstreamAccount | undefined;
}

/** A fresh context per operation: its loaders remember rows, and must not outlive the operation. */
export function createContext(
  database: PrismaClient,
  upstream: UpstreamAccount | undefined,
  viewer: Viewer,
): Context {
  return { viewer, database, loaders: createLoaders(), upstream };
}
