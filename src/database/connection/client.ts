/** The connection settings of a server, and what it is called. */

import type pg from 'pg';
import { withPlainSslMode } from '../../config/databaseUrl.ts';

/** The settings that name a server. */
export type ServerSetting = 'DATABASE_URL' | 'DATABASE_DIRECT_URL' | 'DATABASE_REPLICA_URLS';

/** The connection settings of the server that a setting names. */
export const serverOf = (url: string): pg.ClientConfig => ({ connectionString: withPlainSslMode(url) });

/** Names the server that a client connects to: a URL may have host and port in its query, or leave them out. */
export const hostPortText = ({ host, port }: Pick<pg.Client, 'host' | 'port'>): string =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`;
