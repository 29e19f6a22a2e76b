/** `--cached`: the cost of cached responses, against a bare `node:http` server that sends the same bytes. */

import { measureRounds, median, medianOf, type Round, type Setup } from './compare.ts';
import type { BareResponse } from './contestants/bare.ts';
import { bare, dovetail, dovetailWithDefaults } from './contestants.ts';
import { type ServerProcess, startServer } from './processes.ts';
import { figure, type Table } from './table.ts';
import { type BenchRequest, requestOf, workloadNamed } from './workloads.ts';

/** Compares a gateway without log and metrics, and one with the default settings, with the bare server. They take turns. */
export async function measureCached(setup: Setup): Promise<Table> {
  const devices = workloadNamed('devices');
  const subject = { user: 1, session: 1, template: 1 };
  const rest = requestOf(devices, 'rest', subject);
  const commands = [dovetail({ cachesResponses: true }), dovetailWithDefaults()];
  const gateways = await Promise.all(commands.map((command) => startServer(command, setup.env)));
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
      rows.push(...(await measureCase(setup, title, request, gateways)));
    const head = ['', 'requests/s', 'of bare', 'ratio', 'CPU µs', 'of bare', 'ratio'];
    return { title: 'Cached responses, against a bare node:http server', rows: [head, ...rows] };
  } finally {
    for (const gateway of gateways) await gateway.stop();
  }
}

async function measureCase(
  { generator, settings }: Setup,
  title: string,
  request: BenchRequest,
  gateways: readonly ServerProcess[],
): Promise<string[][]> {
  // The first requests store the response in the cache.
  const responses: BareResponse[] = [];
  for (const gateway of gateways)
    for (let time = 0; time < 3; time++) responses.push(await ask(gateway, request));
  const response = responses.at(-1);
  const other = await startServer(bare(), { BARE_RESPONSE: JSON.stringify(response) });
  try {
    const requests = Array.from({ length: settings.connections }, () => [request]);
    const jobs = [...gateways, other].map((server) => ({ server, requests, status: response?.status ?? 0 }));
    const measured = await measureRounds(generator, settings, jobs);
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
