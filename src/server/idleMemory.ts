/**
 * Gives back the memory that load has left behind. V8 keeps the room of its youngest objects at the size that the busiest
 * minute made it, and garbage among the old ones until more is asked for: a gateway that nobody asks would keep it for days.
 */

import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * In milliseconds: how long hardly anything must have been done. It is long since what comes after a collection takes a few
 * times as long at first: V8 lets go of compiled code as well.
 */
const rest = 60_000;

/** The share of that time that a process with nothing to do may be busy. */
const idle = 0.01;

/** In bytes: what the process must have grown by since the last time, so that it is worth the pause. */
const worthwhile = 32 * 1024 ** 2;

/**
 * Collects whenever the process has had nothing to do and has grown. What comes just then waits for 0.1 to 0.4 seconds; while
 * requests come, nothing is collected that V8 would not.
 * @returns what ends it.
 */
export function collectWhenIdle(interval = rest, collect = collectAll): () => void {
  let before = performance.eventLoopUtilization();
  let smallest = 0;
  const timer = setInterval(() => {
    const { utilization } = performance.eventLoopUtilization(before);
    before = performance.eventLoopUtilization();
    if (utilization > idle || process.memoryUsage.rss() < smallest + worthwhile) return;
    collect();
    smallest = process.memoryUsage.rss();
    // The pause was no work.
    before = performance.eventLoopUtilization();
  }, interval).unref();
  return () => clearInterval(timer);
}

/**
 * Has V8 do what it does before it runs out of memory, which alone shrinks the room for new objects. Node 20 does not know
 * the option, and gives nothing back.
 */
function collectAll(): void {
  // V8 gives the function to contexts that are made from then on.
  setFlagsFromString('--expose-gc');
  const gc: (options: object) => void = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
