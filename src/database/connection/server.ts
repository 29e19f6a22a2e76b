/** Makes the connection settings of the server that a setting names. */

import { hostsOf, withPlainSslMode } from '../../config/databaseUrl.ts';
import type { ServerConfig } from './client.ts';
import { createHosts } from './hosts.ts';

/** The settings that name a server. */
export type ServerSetting = 'DATABASE_URL' | 'DATABASE_DIRECT_URL' | 'DATABASE_REPLICA_URLS';

/** All connections with the same settings go to one server: of several hosts, to the one that accepts writes. */
export function serverOf(url: string): ServerConfig {
  const connectionString = withPlainSslMode(url);
  const hosts = hostsOf(connectionString);
  return hosts ? { connectionString: hosts.urls[0], hosts: createHosts(hosts) } : { connectionString };
}
