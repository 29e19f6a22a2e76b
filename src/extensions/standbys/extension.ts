/** Reads on standbys of the database, and reads after writes across gateways (`Dovetail-Position`). */

import { z } from 'zod';
import { isDatabaseUrl } from '../../config/databaseUrl.ts';
import { adviceOnUrl, setting } from '../../config/setting.ts';
import type { Extension } from '../../extensionPoints.ts';

const urlsIn = (text: string) => [...new Set(text.trim().split(/[\s,]+/))];

const settings = {
  DATABASE_REPLICA_URLS: {
    ...setting(
      'streaming standbys of DATABASE_URL to read from, each a server of its own; see deployment',
      'URLs such as postgresql://user:password@host:5432/database, separated by commas or spaces',
      z
        .string()
        .transform(urlsIn)
        .refine((urls) => urls.every(isDatabaseUrl))
        .optional(),
    ),
    advice: (value: string) => urlsIn(value).map(adviceOnUrl).find(Boolean),
    secret: true,
    isList: true,
  },
};

export const standbys: Extension<typeof settings> = {
  settings,
  requires: { DATABASE_REPLICA_URLS: 'DATABASE_URL' },
  // A mirror reads at once the rows that it has just written, which a standby may not have yet.
  excludes: { DATABASE_REPLICA_URLS: 'UPSTREAM_URL' },

  async open(config, { database, feed, logger, noteChange }) {
    // The embedded engine belongs to one gateway, and has no standbys.
    if (database.embedded) return undefined;
    const { createPositions } = await import('./positions.ts');
    const positions = createPositions(database.sql, feed, noteChange);
    const { DATABASE_REPLICA_URLS: urls, DATABASE_CONNECTIONS: connections, STATEMENT_TIMEOUT } = config;
    if (!urls) return positions;
    const { openReplicas } = await import('./replicas.ts');
    const replicas = await openReplicas({
      urls,
      sql: database.sql,
      feed,
      limits: { connections, statement: STATEMENT_TIMEOUT * 1_000 },
      onChange: (standby, status, isReadFrom) =>
        isReadFrom
          ? logger.info({ standby }, 'a standby is read from')
          : logger.warn({ standby, why: status }, 'a standby is not read from'),
    });
    return { ...positions, ...replicas, connections: connections * urls.length };
  },
};
