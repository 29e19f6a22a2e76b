/** `--cached`: the cost of cached responses, against a bare `node:http` server that sends the same bytes. */

import { measure, median, medianOf, type Round, type Settings } from './compare.ts';
import type { BareResponse } from './contestants/bare.ts';
import { bare, dovetail, dovetailWithDefaults } from './contestants.ts';
import type { LoadGenerator } from './load.ts';
import { type ServerProcess, startServer } from './processes.ts';
import { figure, type Table } from './table.ts';
import { type BenchRequest, requestOf, workloadNamed } from './workloads.ts';

interface Options {
  readonly generator: LoadGenerator;
  readonly env: Readonly<Record<string, string>>;
  readonly settings: Settings;
}

/** Compares a gateway without log and metrics, and one with the default settings, with the bare server. They take turns. */
export async function measureCached(options: Options): Promise<Table> {
  const devices = workloadNamed('devices');
  const subject = { user: 1, session: 1, template: 1 };
  const rest = requestOf(devices, 'rest', subject);
  const commands = [dovetail({ cachesResponses: true }), dovetailWithDefaults()];
  const gateways = await Promise.all(
    commands.map((command) => startServer({ ...command, env: { ...options.env, ...command.env } })),
  );
  try {
    const [gateway] = gateways;
    const tag = gateway && (await ask(gateway, rest)).headers.etag;
    const cases = {
      REST: rest,
      'GraphQL by POST': requestOf(devices, 'graphql', subject),
      304: { ...rest, headers: { ...rest.headers, 'If-None-Match': tag ?? '' } },
    };
    const rows: string[][] = [];
    for (const [title, request] of Object.entries(cases))
      rows.push(...(await measureCase(options, title, request, gateways)));
    const head = ['', 'requests/s', 'of bare', 'ratio', 'CPU µs', 'of bare', 'ratio'];
    return { title: 'Cached responses, against a bare node:http server', rows: [head, ...rows] };
  } finally {
    for (const gateway of gateways) await gateway.stop();
  }
}

async function measureCase(
  { generator, settings }: Options,
  title: string,
  request: BenchRequest,
  gateways: readonly ServerProcess[],
): Promise<string[][]> {
  // The first requests store the response in the cache.
  const responses: BareResponse[] = [];
  for (const gateway of gateways)
    for (let time = 0; time < 3; time++) responses.push(await ask(gateway, request));
  const response = responses.at(-1);
  const other = await startServer({ ...bare(), env: { BARE_RESPONSE: JSON.stringify(response) } });
  try {
    const servers = [...gateways, other];
    const measured = servers.map((): Round[] => []);
    const { seconds, connections } = settings;
    const requests = Array.from({ length: connections }, () => [request]);
    const job = { requests, seconds, status: response?.status ?? 0 };
    // Round 0 warms up, and is not counted.
    for (let round = 0; round <= settings.rounds; round++)
      for (const [index, server] of servers.entries()) {
        const made = await measure(generator, server, job);
        if (round > 0) measured[index]?.push(made);
      }
    const floor = measured.pop() ?? [];
    return measured.map((rounds, index) =>
      rowOf(index === 0 ? title : '  … with its defaults', rounds, floor),
    );
  } finally {
    await other.stop();
  }
}

function rowOf(title: string, own: readonly Round[], floor: readonly Round[]): string[] {
  const figures = (['requestsPerSecond', 'used'] as const).flatMap((key) => {
    const decimals = key === 'used' ? 1 : 0;
    const ratio = median(own.map((round, index) => round[key] / (floor[index]?.[key] ?? Number.NaN)));
    return [...[own, floor].map((rounds) => figure(medianOf(rounds, key), decimals)), figure(ratio, 2)];
  });
  return [title, ...figures];
}

async function ask(
  server: ServerProcess,
  { method, path, headers, body }: BenchRequest,
): Promise<BareResponse> {
  const response = await fetch(server.url + path, { method, headers, ...(body !== undefined && { body }) });
  const sent = Object.fromEntries(response.headers);
  // Headers that Node adds by itself.
  for (const name of ['date', 'connection', 'keep-alive']) delete sent[name];
  return { status: response.status, headers: sent, body: await response.text() };
}
