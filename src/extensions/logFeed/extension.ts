/** Announcements of changes by messages in the log of the database, for which commits do not wait for each other. */

import { z } from 'zod';
import { setting } from '../../config/setting.ts';
import type { Extension } from '../../extensionPoints.ts';

const settings = {
  CHANGE_FEED: setting(
    'how PostgreSQL announces changes: `notify`, for which commits wait for each other, or `logical` decoding, for which they do not; `auto` takes logical where server and role allow it',
    'auto, notify or logical',
    z.enum(['auto', 'notify', 'logical']).default('auto'),
  ),
};

export const logFeed: Extension<typeof settings> = {
  settings,

  complain: ({ CHANGE_FEED, DATABASE_URL }) =>
    CHANGE_FEED === 'logical' && DATABASE_URL === undefined
      ? [
          'CHANGE_FEED is logical, but the embedded engine has no logical decoding: set DATABASE_URL, or unset CHANGE_FEED.',
        ]
      : [],

  async chooseFeed({ CHANGE_FEED: wanted }, { direct, decodes }, logger) {
    // `auto` leaves a database without logical decoding as it is, without a query.
    if (wanted === 'auto' && !decodes) return;
    const { chooseAnnounceMode } = await import('./announceMode.ts');
    const { mode, why } = await chooseAnnounceMode(wanted, direct);
    logger.info({ feed: mode, ...(why !== undefined && { why }) }, 'changes are announced');
  },

  readLog: async (...given) => (await import('./log.ts')).readMessages(...given),
};
