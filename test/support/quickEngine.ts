/**
 * Options of Node: compile the WebAssembly of the embedded engine with the fast compiler only. The optimising compiler takes half of the
 * processor time of a command, and a third of that of all tests, more than its faster code saves in such short processes.
 * `npm run fuzz` runs for minutes, so it optimises.
 */
export const quickEngine = process.env.FUZZ_MINUTES === undefined ? ['--liftoff-only'] : [];
