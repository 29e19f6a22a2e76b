/** Clients of a database server: of the only host that a URL names, or of whichever of several hosts accepts writes. */

import pg from 'pg';
import type { Hosts } from './hosts.ts';

/** The connection settings of a server. */
export interface ServerConfig extends pg.ClientConfig {
  /** Set if the URL names several hosts. `connectionString` then names the first of them. */
  readonly hosts?: Hosts | undefined;
}

/** Creates a client that is not connected yet. */
export function createClient(config: ServerConfig): pg.Client {
  return config.hosts ? new HostsClient(config) : new pg.Client(config);
}

/** The further options that make a pool connect in the same way. */
export function clientsOf({ hosts }: ServerConfig): pg.PoolConfig {
  // The pool passes its own options, which include the hosts, to the constructor. Its types do not say so.
  return hosts ? { Client: HostsClient as unknown as new () => pg.ClientBase } : {};
}

type Connected = (error: Error | null, client?: pg.Client) => void;

/** A client that connects to the host that accepts writes, and to no other. */
class HostsClient extends pg.Client {
  readonly #hosts: Hosts;

  constructor(config: ServerConfig) {
    super(config);
    if (!config.hosts) throw new Error('HostsClient needs several hosts');
    this.#hosts = config.hosts;
    // The connection may be lost while it is being checked, before its user listens for errors.
    this.on('error', () => {});
  }

  // The signatures of the base class: with a callback, or returning a promise.
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
    const { host, port } = route.address;
    // The owner may have closed it in the meantime.
    if (this.connection.stream.destroyed) throw new Error('Connection terminated');
    Object.assign(this, { host, port });
    // `pg` looks up the password by these parameters.
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
