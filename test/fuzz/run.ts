/** Runs each random test for the given time: `npm run fuzz -- --minutes 10 --engine embedded`. Without `--engine` it runs them on both engines. */

import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

const { minutes, engine } = parseArgs({
  options: { minutes: { type: 'string', default: '1' }, engine: { type: 'string' } },
}).values;
if (!(Number(minutes) > 0)) throw new RangeError(`--minutes must be a number above 0, and is ${minutes}`);
const engines = ['embedded', 'postgres'];
if (engine !== undefined && !engines.includes(engine))
  throw new RangeError(`--engine must be one of ${engines.join(' and ')}, and is ${engine}`);

const projects = (engine === undefined ? engines : [engine]).flatMap((name) => ['--project', `${name}*`]);
const tests = [
  'test/fuzz',
  'test/database/reader/statement.test.ts',
  'test/schema/filtering/oracle.test.ts',
  'test/coherence/coherence.slow.postgres.test.ts',
];
const { status } = spawnSync('node_modules/.bin/vitest', ['run', ...projects, ...tests], {
  stdio: 'inherit',
  env: { ...process.env, FUZZ_MINUTES: minutes },
});
process.exitCode = status ?? 1;
