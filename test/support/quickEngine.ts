/**
 * Has Node compile the embedded engine quickly, once. To compile it again, for code that runs faster, takes half of the
 * processor time of a command, and a third of that of all tests: more than such short lives ever get back. `npm run fuzz`,
 * which goes on for minutes, gets it back.
 */
export const quickEngine = process.env.FUZZ_MINUTES === undefined ? ['--liftoff-only'] : [];
