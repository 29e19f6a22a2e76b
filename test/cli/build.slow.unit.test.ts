/** `npm run build`, in a small clone with a fake compiler that records its runs. */

import { execFileSync } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

let clone: string;
const at = (path: string) => join(clone, path);
const write = async (path: string, text: string) => {
  await mkdir(dirname(at(path)), { recursive: true });
  await writeFile(at(path), text);
};

beforeAll(async () => {
  clone = await mkdtemp(join(tmpdir(), 'dovetail-build-'));
  await mkdir(at('.ci'));
  await cp('.ci/build.mjs', at('.ci/build.mjs'));
  await write('package.json', '{}');
  await write('src/cli/cli.ts', 'one');
  await write('src/rest/operations.graphql', '');
  await write('src/rest/examples.json', '');
  await write('src/graphql/examples/devices.graphql', '');
  await write('prisma/schema.prisma', '');
  await write('prisma/migrations/1/migration.sql', '');
  await write('prisma/pack.mjs', '');
  await write('.ci/bundle.mjs', '');
  await write('console/src/main.tsx', 'one');
  await write(
    'node_modules/.bin/vite',
    '#!/bin/sh\nmkdir -p dist/console && cp console/src/main.tsx dist/console/main.js',
  );
  await chmod(at('node_modules/.bin/vite'), 0o755);
  await write('node_modules/.package-lock.json', '1');
  // A fake of npm, which would take a third of a second to find that there is nothing to generate.
  await write('node_modules/.bin/npm', '#!/bin/sh\n[ "$*" = "run --silent generate" ]');
  await chmod(at('node_modules/.bin/npm'), 0o755);
  await write(
    'node_modules/.bin/tsc',
    `#!/bin/sh
     grep -q wrong src/cli/cli.ts && exit 7
     [ -f dist/.tsbuildinfo ] || echo whole >> runs
     echo run >> runs
     mkdir -p dist/cli dist/rest dist/graphql
     cp src/cli/cli.ts dist/cli/cli.js
     touch dist/.tsbuildinfo`,
  );
  await chmod(at('node_modules/.bin/tsc'), 0o755);
});
afterAll(() => rm(clone, { recursive: true, force: true }));

/** Builds, and returns the runs of the compiler; `whole` is one without a previous build. */
async function build(): Promise<string[]> {
  await rm(at('runs'), { force: true });
  execFileSync(process.execPath, [at('.ci/build.mjs')], { stdio: 'pipe' });
  const runs = await readFile(at('runs'), 'utf8').catch(() => '');
  return runs.split('\n').filter((line) => line !== '');
}

it('builds what is missing, and nothing if no file has changed, whatever the modification times are', async () => {
  expect(await build()).toEqual(['whole', 'run']);
  expect(await build()).toEqual([]);
  await utimes(at('src/cli/cli.ts'), new Date(), new Date());
  expect(await build()).toEqual([]);
});

it.each<[string, string[], () => Promise<unknown>]>([
  [
    'edited to the same length, with its time put back',
    ['run'],
    async () => {
      const { atime, mtime } = await stat(at('src/cli/cli.ts'));
      await write('src/cli/cli.ts', 'two');
      await utimes(at('src/cli/cli.ts'), atime, mtime);
    },
  ],
  ['added', ['run'], () => write('src/cli/more.ts', '')],
  ['renamed', ['run'], () => rename(at('src/cli/more.ts'), at('src/cli/other.ts'))],
  ['removed', ['run'], () => rm(at('src/cli/other.ts'))],
  ['of the console', ['run'], () => write('console/src/main.tsx', 'two')],
  ['of a migration', ['run'], () => write('prisma/migrations/1/migration.sql', 'SELECT 1')],
  ['of the compiler’s settings', ['run'], () => write('tsconfig.build.json', '{}')],
  ['of the packages that are installed', ['run'], () => write('node_modules/.package-lock.json', '2')],
  ['of the build, edited', ['whole', 'run'], () => write('dist/cli/cli.js', 'three')],
  ['of the build, removed', ['whole', 'run'], () => rm(at('dist/cli/cli.js'))],
])('builds again after a file has changed: one %s', async (_, runs, change) => {
  expect(await build()).toEqual([]);
  await change();
  expect(await build()).toEqual(runs);
  expect(await build()).toEqual([]);
  expect(await readFile(at('dist/cli/cli.js'), 'utf8')).toBe(await readFile(at('src/cli/cli.ts'), 'utf8'));
});

it('fails if the compiler fails, and runs it again the next time', async () => {
  await write('src/cli/cli.ts', 'wrong');
  const failure = expect.objectContaining({ status: 7 });
  await expect(build()).rejects.toEqual(failure);
  await expect(build()).rejects.toEqual(failure);
  await write('src/cli/cli.ts', 'one');
  expect(await build()).toEqual(['whole', 'run']);
});
