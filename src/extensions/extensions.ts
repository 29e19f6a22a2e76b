/**
 * The list of extensions. Nothing else in the core names one: each is taken away by removing its folder, that of its tests, and its lines
 * here. They are opened in this order, and closed in the opposite one. `metrics` reads those of all others, so it comes last.
 */

import type { Extension } from '../extensionPoints.ts';
import { compiler } from './compiler/extension.ts';
import { demo } from './demo/extension.ts';
import { doctor } from './doctor/extension.ts';
import { dump } from './dump/extension.ts';
import { federation } from './federation/extension.ts';
import { followed } from './followed/extension.ts';
import { logFeed } from './logFeed/extension.ts';
import { mcp } from './mcp/extension.ts';
import { metrics } from './metrics/extension.ts';
import { persistedOperations } from './persistedOperations/extension.ts';
import { standbys } from './standbys/extension.ts';
import { tracing } from './tracing/extension.ts';
import { upstream } from './upstream/extension.ts';
import { webSockets } from './webSockets/extension.ts';
import { yogaPlugins } from './yogaPlugins/extension.ts';

export const extensions: readonly Extension[] = [
  doctor,
  dump,
  tracing,
  compiler,
  federation,
  yogaPlugins,
  persistedOperations,
  followed,
  logFeed,
  standbys,
  upstream,
  demo,
  mcp,
  webSockets,
  metrics,
];
