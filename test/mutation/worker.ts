/** Names the process that runs the tests, and is written when a file of tests begins. */
export const workerFile = 'test/output/mutation/worker';
