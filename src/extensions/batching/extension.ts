/** Several operations in one POST, as Apollo's BatchHttpLink sends them. */

import { onOffSetting } from '../../config/setting.ts';
import type { Extension } from '../../extensionPoints.ts';
import { createRunBatch } from './batch.ts';

const settings = {
  BATCHING: onOffSetting(
    'whether a POST may have a list of up to 10 operations, which counts as so many requests',
    'off',
  ),
};

export const batching: Extension<typeof settings> = {
  settings,
  open: async (config) => ({ runBatch: createRunBatch(config) }),
};
