/** A pool of connections to a database that exists only in what it takes: see `createConcurrency`. */

import { EventEmitter } from 'node:events';

export class SimulatedPool extends EventEmitter {
  readonly options: { readonly max: number };
  /** How long a statement takes that begins while so many run, itself included. */
  duration: (running: number) => number;
  readonly #running = new Set<object>();
  readonly #waiting: (() => void)[] = [];

  constructor(max: number, duration: (running: number) => number = () => 1) {
    super();
    this.options = { max };
    this.duration = duration;
  }

  get totalCount(): number {
    return this.options.max;
  }
  get idleCount(): number {
    return this.options.max - this.#running.size;
  }
  get waitingCount(): number {
    return this.#waiting.length;
  }

  /** Runs a statement until it is told to end, and returns what tells it. */
  begin(): (error?: Error) => void {
    const connection = {};
    this.#running.add(connection);
    this.emit('acquire', connection);
    return (error) => {
      // As `pg-pool` does it: the connection is idle only after everybody was told.
      this.emit('release', error, connection);
      this.#running.delete(connection);
      this.#waiting.shift()?.();
    };
  }

  /** Runs a statement, once there is a connection. */
  run(): Promise<void> {
    return new Promise((settle) => {
      const start = () => {
        const end = this.begin();
        setTimeout(() => {
          end();
          settle();
        }, this.duration(this.#running.size));
      };
      if (this.idleCount > 0) start();
      else this.#waiting.push(start);
    });
  }
}
