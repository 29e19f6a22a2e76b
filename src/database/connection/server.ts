/** How a server is reached that a setting names. */

import type { Config } from '../../config.ts';
import { hostsOf } from '../../databaseUrl.ts';
import type { ServerConfig } from './client.ts';
import { createHosts } from './hosts.ts';

/** The settings that name a server. */
export type ServerSetting = 'DATABASE_URL' | 'DATABASE_DIRECT_URL' | 'DATABASE_REPLICA_URLS';

/** All connections that are made with it go to one server: of several hosts, to the one that takes writes. */
export function serverOf(url: string): ServerConfig {
  const hosts = hostsOf(url);
  return hosts ? { connectionString: hosts.urls[0], hosts: createHosts(hosts) } : { connectionString: url };
}

/** How a process reaches the server that only hears of changes, for others that serve. */
export function directOf({ DATABASE_URL, DATABASE_DIRECT_URL }: ServerSettings): ServerConfig {
  const url = DATABASE_DIRECT_URL ?? DATABASE_URL;
  return url === undefined ? {} : serverOf(url);
}

type ServerSettings = Pick<Config, 'DATABASE_URL' | 'DATABASE_DIRECT_URL'>;
