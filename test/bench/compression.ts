/** How many bytes compression saves and how much processor time it takes, for each content coding. */

import { median } from './compare.ts';
import type { Measurement } from './load.ts';
import type { ServerProcess } from './processes.ts';
import type { Table } from './table.ts';
import { type BenchRequest, requestOf, workloads } from './workloads.ts';

const subject = { user: 1, session: 1, template: 1 };

/** The codings. The first is none, with which the others are compared. */
const codings = ['', 'gzip', 'br'];

const taking = (request: BenchRequest, coding: string): BenchRequest => ({
  ...request,
  headers: { ...request.headers, 'Accept-Encoding': coding },
});

/** The number of bytes of the body in this coding; undefined if the response is not compressed with it. */
async function sizeOf(
  { url }: ServerProcess,
  request: BenchRequest,
  coding: string,
): Promise<number | undefined> {
  const { method, path, headers, body } = taking(request, coding);
  const response = await fetch(url + path, { method, headers, ...(body !== undefined && { body }) });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`${path} was a ${response.status}`);
  const isCompressed = (response.headers.get('Content-Encoding') ?? '') === coding;
  return isCompressed ? Number(response.headers.get('Content-Length')) : undefined;
}

/** A table of the size of each workload's response in each coding. */
export async function measureSizes(gateway: ServerProcess): Promise<Table> {
  const rows = [['bytes', 'plain', ...codings.slice(1)]];
  for (const workload of workloads) {
    const request = requestOf(workload, 'graphql', subject);
    const sizes = [];
    for (const coding of codings)
      sizes.push((await sizeOf(gateway, request, coding))?.toLocaleString('en') ?? '–');
    rows.push([workload.title, ...sizes]);
  }
  return { title: 'Bodies of GraphQL responses; – is sent as it is', rows };
}

interface Round extends Measurement {
  /** Processor time of the server for one request, in microseconds. */
  readonly used: number;
}

export interface RateOptions {
  readonly gateway: ServerProcess;
  readonly rounds: number;
  run(request: BenchRequest): Promise<Round>;
}

/** Compares cached responses a second in each coding. The codings take turns in each round. */
export async function measureRates({ gateway, rounds, run }: RateOptions): Promise<Table> {
  const rows = [['', 'coding', 'requests/s', 'of plain', 'target', 'CPU µs', 'p99 ms']];
  for (const name of ['session', 'sessions']) {
    const workload = workloads.find((each) => each.name === name);
    if (!workload) throw new Error(`there is no workload ${name}`);
    const request = requestOf(workload, 'rest', subject);
    const there: string[] = [];
    // The first request stores the response in this coding in the cache.
    for (const coding of codings) if (await sizeOf(gateway, request, coding)) there.push(coding);
    const measured = new Map<string, Round[]>(there.map((coding) => [coding, []]));
    // Round 0 warms up, and is not counted.
    for (let round = 0; round <= rounds; round++)
      for (const coding of there) {
        const made = await run(taking(request, coding));
        if (round > 0) measured.get(coding)?.push(made);
      }
    const plain = measured.get('') ?? [];
    for (const [coding, made] of measured) {
      const each = (key: keyof Round) => median(made.map((round) => round[key]));
      const ratios = made.map(
        (round, index) => round.requestsPerSecond / (plain[index]?.requestsPerSecond ?? Number.NaN),
      );
      rows.push([
        coding === '' ? workload.title : '',
        coding || 'plain',
        Math.round(each('requestsPerSecond')).toLocaleString('en'),
        median(ratios).toFixed(2),
        coding === '' ? '' : '0.90',
        each('used').toFixed(1),
        each('p99').toFixed(1),
      ]);
    }
  }
  return { title: 'Cached responses of REST, compressed and plain', rows };
}
