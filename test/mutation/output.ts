/** Where the copies are, and what was measured. */
export const output = 'test/output/mutation';

/** Names the process that runs the tests, and is written when a file of tests begins. */
export const workerFile = `${output}/worker`;
