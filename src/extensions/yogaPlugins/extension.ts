/** Plugins of others for Yoga: those of the module that `YOGA_PLUGINS` names. */

import { z } from 'zod';
import { setting } from '../../config/setting.ts';
import type { Extension } from '../../extensionPoints.ts';

const settings = {
  YOGA_PLUGINS: setting(
    'plugins for GraphQL Yoga or Envelop: a module whose default export is a list of them',
    'a path that ends in .js or .mjs',
    z
      .string()
      .regex(/\.m?js$/)
      .optional(),
  ),
};

export const yogaPlugins: Extension<typeof settings> = {
  settings,

  plugins: async ({ YOGA_PLUGINS: path }) =>
    path === undefined ? [] : (await import('./load.ts')).loadPlugins(path),
};
