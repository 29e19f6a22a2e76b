/** Every example of a command in the documentation is run as it is written, and must print what the page says. */

import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { copyFolder } from '../support/copyFolder.ts';
import { newFolder } from '../support/newFolder.ts';
import { endProcesses, serve } from '../support/processes.ts';
import { type Block, blocksOf, pages, readPage } from './markdown.ts';

/** The examples that this test does not run, each by its beginning, with the reason. */
const notRun: Readonly<Record<string, string>> = {
  'npm ci': 'installs all packages from the registry, which .ci/run does',
  'npm install ': 'installs packages from the registry; .ci/run runs the tarball',
  'DATABASE_URL=postgresql://user:password@':
    'needs a PostgreSQL of that name; test/server/cluster.slow.postgres.test.ts starts one',
  'psql postgresql://': 'needs a PostgreSQL of that name',
  '# While the table "OssmDevice" is missing':
    'needs a broken database; test/graphql/execution.postgres.test.ts has one',
  'CORS_ORIGINS=': 'runs a gateway; test/browser/frontend.slow.postgres.test.ts opens the page',
  '# Of a gateway with PERSISTED_OPERATIONS=only':
    'needs a gateway of its own; test/graphql/persisted.postgres.test.ts has one',
  'npx dovetail-gateway dump data.sql':
    'needs a PostgreSQL; test/extensions/dump/dump.slow.postgres.test.ts runs it',
  'PUBLIC_URL=': 'runs a gateway; test/browser/prefix.slow.postgres.test.ts opens it behind proxies',
  'docker build': 'needs Docker',
  'docker compose -f ops/cluster':
    'needs Docker; test/ops/cluster.slow.unit.test.ts runs the files that it names',
  'OTEL_EXPORTER_OTLP_ENDPOINT=':
    'needs a collector of traces, which test/extensions/tracing/traces.slow.embedded.test.ts plays',
  'for each in $(seq 2000)':
    'needs a load that no test can be sure of; test/server/shedding.test.ts makes one',
  'npx vite console': 'runs until it is stopped',
  'npm run fuzz': 'runs for minutes',
};

/** The commands whose exit code is not 0, each by its beginning. */
const exitCodes: Readonly<Record<string, number>> = {
  // A command fails when a setting is wrong.
  'MAX_DEPTH=deep ': 1,
  'DATA_DIR=': 1,
  // curl ends a subscription after the given time.
  'curl --no-buffer --max-time 2 ': 28,
};

/** The value that belongs to the first key with which the text begins. */
const byBeginning = <Value>(values: Readonly<Record<string, Value>>, text: string): Value | undefined =>
  Object.entries(values).find(([beginning]) => text.startsWith(beginning))?.[1];

const engine = inject('engine');
if (engine.kind !== 'embedded') throw new Error('there is no data folder to copy');
/** The folder that the commands run in, with the data of the gateway in `.data`. */
const folder = newFolder();
// The data of the gateway, of a second gateway that the examples start, and of a mirror.
for (const name of ['.data', 'spare', 'mirror']) await copyFolder(engine.template, join(folder, name));
const { url } = await serve({ DATA_DIR: join(folder, '.data') });
const token = (await readFile(join(folder, '.data', 'demo-token'), 'utf8')).trim();
/** The gateway that stands for `localhost:4000`, such as `127.0.0.1:40123`. */
const gateway = new URL(url).host;
/** The values for the parts of the examples that readers have to replace. */
const replacements: readonly (readonly [written: string, value: string])[] = [
  ['https://example.com/api/v1', `${url}/api/v1`],
  ['UPSTREAM_TOKEN=…', `UPSTREAM_TOKEN=${token}`],
  ['TOKEN=…', `TOKEN=${token}`],
  ['your_name', 'demo'],
  // The preamble of the shell replaces the address for `curl`; for other programs it is replaced here.
  ['openapi-typescript http://localhost:4000', `openapi-typescript ${url}`],
];
afterAll(async () => {
  await endProcesses();
  await rm(folder, { recursive: true, force: true });
});

/** These characters delimit the output of each step. No output contains them. */
const mark = { begin: '\u001e', end: '\u001f' } as const;

/**
 * Defines the commands of the pages for the test. `npm` runs the command of package.json without the build, which has been
 * done before. A gateway is started in the background, on a free port, which replaces `localhost:4000` from then on.
 */
const preamble = `
curl() {
  local arguments=("\${@//localhost:4000/$gateway}")
  command curl --silent --max-time 30 "\${arguments[@]//localhost:9464/$metrics}"
}
npx() {
  if [ "$1" = dovetail-gateway ]; then node "$root/bin/dovetail.js" "\${@:2}"; else "$root/node_modules/.bin/$1" "\${@:2}"; fi
}
npm() {
  case "$*" in
    start | 'start -- '*) start "\${@:3}" ;;
    *) echo "npm $*: the test does not know this command" >&2; return 1 ;;
  esac
}
start() {
  stop
  rm -f started.out
  local data=\${DATA_DIR-spare}
  DATA_DIR=$data PORT=0 METRICS_PORT=\${METRICS_PORT:+0} node "$root/bin/dovetail.js" serve "$@" > started.out 2> started.err &
  started=$!
  for _ in $(seq 600); do
    grep -qs '^  curl .*/api/v1' started.out && break
    kill -0 $started || { cat started.err >&2; return 1; }
    sleep 0.1
  done
  gateway=$(sed -n 's|^  GraphiQL  *http://\\([^/]*\\)/.*|\\1|p' started.out)
  metrics=$(sed -n 's|^  Metrics  *http://\\([^/]*\\)/.*|\\1|p' started.out)
}
stop() { [ -z "$started" ] || { kill $started; wait $started; started=; }; } 2> /dev/null
trap stop EXIT
`;

/** One command, or several, and their expected output; undefined where the page does not show it. */
interface Step {
  command: string;
  expected: string | undefined;
  readonly line: number;
}

/** The commands of a block, each with its expected output from the comment after it. */
function stepsOf({ text, line: blockLine }: Block): Step[] {
  const steps: Step[] = [];
  for (const line of text.trimEnd().split('\n')) {
    const last = steps.at(-1);
    const [, printed] = /^# ?(.*)/.exec(line) ?? [];
    if (printed !== undefined && last)
      last.expected = last.expected === undefined ? printed : `${last.expected}\n${printed}`;
    else if (last && last.expected === undefined) last.command += `\n${line}`;
    else steps.push({ command: line, expected: undefined, line: blockLine });
  }
  return steps;
}

/** Runs the steps in one shell, and returns the output and the exit code of each. */
async function runSteps(steps: readonly Step[], signal: AbortSignal) {
  const script = steps
    .map(({ command }) => `printf '${mark.begin}'\n${fill(command)}\nprintf '${mark.end}%s' $?\n`)
    .join('');
  const { HOST, PORT, DATABASE_URL, DATA_DIR, METRICS_PORT, ...others } = process.env;
  const env = { ...others, root: process.cwd(), gateway, LOG_LEVEL: 'warn', NO_COLOR: '1' };
  const { stdout, stderr } = await promisify(execFile)(
    'bash',
    ['-c', `exec < /dev/null\n${preamble}${script}`],
    { cwd: folder, env, signal, maxBuffer: 100_000_000 },
  );
  const printed = stdout.split(mark.begin).slice(1);
  if (printed.length !== steps.length) throw new Error(`the shell ended early: ${stdout}${stderr}`);
  return printed.map((each) => {
    const [text = '', code] = each.split(mark.end);
    return { text: stripVTControlCharacters(text).replaceAll('\r', '').trim(), code: Number(code) };
  });
}

const fill = (text: string) =>
  replacements.reduce((filled, [written, value]) => filled.replaceAll(written, value), text);

/** A pattern for the output that a page shows, in which `…` stands for any text. */
function patternOf(expected: string): RegExp {
  const parts = expected.split('…').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*')}$`);
}

const examples = pages.flatMap((page) => {
  const blocks = blocksOf(readPage(page)).filter(({ language }) => language === 'sh');
  const run = blocks.filter(({ text }) => byBeginning(notRun, text) === undefined);
  return run.length > 0 ? [{ page, steps: run.flatMap(stepsOf) }] : [];
});

describe.each(examples)('$page', ({ page, steps }) => {
  // The commands of a page load the program half a dozen times, on a machine that may be busy.
  it('has commands that print what the page says and exit with the expected code', async ({ signal }) => {
    const outcomes = await runSteps(steps, signal);
    for (const [index, { command, expected, line }] of steps.entries()) {
      const where = `${page}, the block of line ${line}: ${command}`;
      const { text, code } = outcomes[index] ?? expect.fail();
      if (expected !== undefined) expect(text, where).toMatch(patternOf(fill(expected)));
      expect(code, where).toBe(byBeginning(exitCodes, command) ?? 0);
    }
  }, 120_000);
});
