/** A pool of connections that simulates the time which statements take, for tests of `createConcurrency`. */

import { EventEmitter } from 'node:events';

export class SimulatedPool extends EventEmitter {
  readonly options: { readonly max: number };
  /** The duration of a statement in milliseconds. @param running how many statements run when it begins, including itself. */
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

  /** Begins a statement. @returns a function that ends it. */
  begin(): (error?: Error) => void {
    const connection = {};
    this.#running.add(connection);
    this.emit('acquire', connection);
    return (error) => {
      // As in `pg-pool`, the connection becomes idle only after the event.
      this.emit('release', error, connection);
      this.#running.delete(connection);
      this.#waiting.shift()?.();
    };
  }

  /** Runs a statement once a connection is idle. */
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
