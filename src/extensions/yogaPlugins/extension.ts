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

const load = async (path: string) => (await import('./load.ts')).loadPlugins(path);

export const yogaPlugins: Extension<typeof settings> = {
  settings,

  checks: ({ YOGA_PLUGINS: path }) =>
    path === undefined ? [] : [['plugins', async () => `${(await load(path)).length} can be used`]],

  plugins: async ({ YOGA_PLUGINS: path }) => (path === undefined ? [] : load(path)),
};
