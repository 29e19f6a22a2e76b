/** How V8 compiles the engine, which is WebAssembly. */

import { setFlagsFromString } from 'node:v8';

/**
 * Has V8 compile WebAssembly with its baseline compiler alone, in this process. To be called before the engine is loaded.
 *
 * V8 would compile functions that are called often a second time, with its optimizing compiler. Of the engine that is above
 * all its SQL parser, one function of 100 KB: on Node 24 this takes 600 MiB and seconds of processor time at each start.
 * Without optimized code the process takes 40 MiB less at rest. Statements over few rows take as long as before, and
 * statements over 100,000 rows up to 1.8 times as long.
 */
export function compileWithBaselineOnly(): void {
  // Either alone has no effect, or that V8 optimizes every function.
  setFlagsFromString('--no-wasm-tier-up');
  setFlagsFromString('--no-wasm-dynamic-tiering');
}
