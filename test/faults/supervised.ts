/** A gateway under a supervisor, as in production: its process is started again whenever it ends. */

import { freePort } from '../support/freePort.ts';
import { type RunningProcess, startCli } from '../support/processes.ts';
import { isServed } from '../support/until.ts';

/** In milliseconds: how long the supervisor waits before it starts a process again. */
const pause = 300;

export type SupervisedGateway = Awaited<ReturnType<typeof superviseGateway>>;

export async function superviseGateway(settings: Readonly<Record<string, string>>) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  /** The exit codes of the processes that ended by themselves, and the last line that each wrote. */
  const exits: { code: number | null; lastLine: string }[] = [];
  let running: RunningProcess;
  let stopping = false;

  function start(): void {
    const limits = { RATE_LIMIT: '0', RATE_LIMIT_ANONYMOUS: '0' };
    running = startCli(['serve'], { PORT: String(port), LOG_LEVEL: 'fatal', ...limits, ...settings });
    const { child, exit } = running;
    void exit.then(({ code, stderr }) => {
      if (child.signalCode === null && !stopping) exits.push({ code, lastLine: lastLineOf(stderr) });
      if (!stopping) setTimeout(() => stopping || start(), pause);
    });
  }

  start();
  return {
    url,
    exits,
    /** Kills the running process; the supervisor starts another. */
    kill: () => void running.child.kill('SIGKILL'),
    isReady: () => isServed(`${url}/readyz`),
    async stop() {
      stopping = true;
      running.child.kill('SIGTERM');
      const cut = setTimeout(() => running.child.kill('SIGKILL'), 10_000);
      await running.exit;
      clearTimeout(cut);
    },
  };
}

/** The message of a fatal log line, or the line itself. */
function lastLineOf(text: string): string {
  const line = text.trimEnd().split('\n').at(-1) ?? '';
  return /"msg":"([^"]*)"/.exec(line)?.[1] ?? line;
}
