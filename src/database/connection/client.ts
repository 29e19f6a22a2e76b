/** Connections to a server: to the one host that the settings name, or of several to the one that takes writes. */

import pg from 'pg';
import type { Hosts } from './hosts.ts';

/** How a server is reached. */
export interface ServerConfig extends pg.ClientConfig {
  /** Of several hosts, which connections go to; `connectionString` names the first of them then. */
  readonly hosts?: Hosts | undefined;
}

/** A client that is yet to be connected. */
export function createClient(config: ServerConfig): pg.Client {
  return config.hosts ? new HostsClient(config) : new pg.Client(config);
}

/** What a pool has to be told, beside the config, to make its connections in this way. */
export function clientsOf({ hosts }: ServerConfig): pg.PoolConfig {
  // The pool gives what it makes its own options, which the types do not say.
  return hosts ? { Client: HostsClient as unknown as new () => pg.ClientBase } : {};
}

type Connected = (error: Error | null, client?: pg.Client) => void;

/** A client that connects to the host that takes writes, and to no other. */
class HostsClient extends pg.Client {
  readonly #hosts: Hosts;

  constructor(config: ServerConfig) {
    super(config);
    if (!config.hosts) throw new Error('it is made of several hosts');
    this.#hosts = config.hosts;
    // A connection may be lost while it is looked at, before anybody else listens.
    this.on('error', () => {});
  }

  // As the class that it extends has it: with a callback, or for a promise.
  override connect(): Promise<this>;
  override connect(callback: Connected): void;
  override connect(callback?: Connected): Promise<this> | undefined {
    const connecting = this.#connect();
    if (!callback) return connecting;
    connecting.then(
      () => callback(null, this),
      (error: Error) => callback(error),
    );
    return undefined;
  }

  async #connect(): Promise<this> {
    const route = await this.#hosts.find();
    const { host, port } = route.place;
    // Whoever made it may have given it up meanwhile.
    if (this.connection.stream.destroyed) throw new Error('Connection terminated');
    Object.assign(this, { host, port });
    // Which is what looks up a password for the host.
    const { connectionParameters } = this as unknown as { connectionParameters: pg.ClientConfig };
    Object.assign(connectionParameters, { host, port });
    this.#hosts.add(this, route);
    try {
      await super.connect();
      await this.#hosts.check(this, route);
      return this;
    } catch (error) {
      this.#hosts.miss(route);
      this.connection.stream.destroy();
      throw error;
    }
  }
}
