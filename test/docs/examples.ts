/** How the examples of the documentation are run: one shell runs all blocks of a page, in their order. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';
import type { Block } from './markdown.ts';

/** The examples that this test does not run, each by its beginning, with the reason. */
export const notRun: Readonly<Record<string, string>> = {
  'npm ci && npm start': 'installs all packages from the registry, which .ci/run does',
  'npm ci  ': 'installs all packages from the registry, which .ci/run does',
  'DATABASE_URL=postgresql://user:password@':
    'needs a PostgreSQL of that name; test/server/cluster.slow.postgres.test.ts starts one',
  'psql postgresql://': 'needs a PostgreSQL of that name',
  '# While the table "OssmDevice" is missing':
    'needs a broken database; test/rest/errors.postgres.test.ts has one',
  'CORS_ORIGINS=': 'runs a gateway; test/browser/frontend.slow.embedded.test.ts opens the page',
  '# Of a gateway with PERSISTED_OPERATIONS=only':
    'needs a gateway of its own; test/graphql/automaticPersistedQueries.postgres.test.ts has one',
  'docker build': 'needs Docker',
  'docker compose -f ops/cluster':
    'needs Docker; test/ops/cluster.slow.unit.test.ts runs the files that it names',
  'OTEL_EXPORTER_OTLP_ENDPOINT=':
    'needs a collector of traces, which test/telemetry/traces.embedded.test.ts plays',
  'for each in $(seq 2000)':
    'needs a load that no test can be sure of; test/server/shedding.test.ts makes one',
  'npx vite console': 'runs until it is stopped',
  'npm run fuzz': 'runs for minutes',
};

/** The commands whose exit code is not 0, each by its beginning. */
const exitCodes: Readonly<Record<string, number>> = {
  // A command fails when a setting is wrong.
  'MAX_DEPTH=deep ': 1,
  // curl ends a subscription after the given time.
  'curl --no-buffer --max-time 2 ': 28,
};

/** The exit code that a command should have. */
export function exitCodeOf(command: string): number {
  const [, code] = Object.entries(exitCodes).find(([beginning]) => command.startsWith(beginning)) ?? [];
  return code ?? 0;
}

/** Why a block is not run, or undefined if it is run. */
export function reasonNotToRun({ text }: Block): string | undefined {
  const [, reason] = Object.entries(notRun).find(([beginning]) => text.startsWith(beginning)) ?? [];
  return reason;
}

/** Where examples are run. */
export interface Place {
  /** The root of the repository. */
  readonly root: string;
  /** The folder that the commands run in, with the data of the gateway in `.data`. */
  readonly folder: string;
  /** The gateway that stands for `localhost:4000`, such as `127.0.0.1:40123`. */
  readonly gateway: string;
  /** The values for the parts of the examples that readers have to replace. */
  readonly replacements: readonly (readonly [written: string, value: string])[];
}

/** One command, or several, and their expected output; undefined where the page does not show it. */
interface Step {
  readonly command: string;
  readonly expected: string | undefined;
}

export interface Outcome extends Step {
  readonly line: number;
  readonly stdout: string;
  readonly code: number;
}

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
  if [ "$1" = dovetail ]; then node "$root/bin/dovetail.js" "\${@:2}"; else "$root/node_modules/.bin/$1" "\${@:2}"; fi
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

/**
 * Runs the blocks, and returns the output and the exit code of each command.
 * @param signal aborted when the test has timed out.
 */
export async function runBlocks(
  blocks: readonly Block[],
  place: Place,
  signal: AbortSignal,
): Promise<Outcome[]> {
  const steps = blocks.flatMap((block) => stepsOf(block).map((step) => ({ ...step, line: block.line })));
  const fill = (text: string) =>
    place.replacements.reduce((filled, [written, value]) => filled.replaceAll(written, value), text);
  const script = steps
    .map(({ command }) => `printf '${mark.begin}'\n${fill(command)}\nprintf '${mark.end}%s' $?\n`)
    .join('');
  const { HOST, PORT, DATABASE_URL, DATA_DIR, METRICS_PORT, ...env } = process.env;
  const child = spawn('bash', ['-c', `${preamble}${script}`], {
    cwd: place.folder,
    env: {
      ...env,
      root: place.root,
      gateway: place.gateway,
      LOG_LEVEL: 'warn',
      NO_COLOR: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
  });
  child.on('error', () => {});
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  await once(child, 'close');
  const printed = stdout.split(mark.begin).slice(1);
  if (printed.length !== steps.length) throw new Error(`the shell ended early: ${stdout}${stderr}`);
  return steps.map((step, index) => {
    const [text = '', code] = (printed[index] ?? '').split(mark.end);
    const expected = step.expected === undefined ? undefined : fill(step.expected);
    return { ...step, expected, stdout: plain(text), code: Number(code) };
  });
}

/** The output without colours and carriage returns. */
const plain = (text: string) => stripVTControlCharacters(text).replaceAll('\r', '').trim();

/** The commands of a block, each with its expected output from the comment after it. */
function stepsOf({ text }: Block): Step[] {
  const steps: { command: string; expected: string | undefined }[] = [];
  for (const line of text.trimEnd().split('\n')) {
    const last = steps.at(-1);
    const [, printed] = /^# ?(.*)/.exec(line) ?? [];
    if (printed !== undefined && last)
      last.expected = last.expected === undefined ? printed : `${last.expected}\n${printed}`;
    else if (last && last.expected === undefined) last.command += `\n${line}`;
    else steps.push({ command: line, expected: undefined });
  }
  return steps;
}

/** A pattern for the output that a page shows, in which `…` stands for any text. */
export function patternOf(expected: string): RegExp {
  const parts = expected.split('…').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*')}$`);
}
