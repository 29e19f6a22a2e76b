/** Overload: how long accepted requests take at four times the sustainable load, and how the other requests are rejected. */

import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { commandName, connectionTo } from '../../src/database/embedded/server.ts';
import { addAccounts, type LoadAccount } from './accounts.ts';
import { createServer } from './server.ts';
import { superviseGateway, until } from './supervised.ts';

interface Sample {
  readonly status: string;
  readonly took: number;
}

/** A connection that sends one request at a time, with as little work as possible: the load must outrun the gateway. */
function openConnection(url: URL, account: LoadAccount) {
  const socket = connect(Number(url.port), url.hostname);
  socket.on('error', () => {});
  const requests = account.sessions.map((_, offset) =>
    Buffer.from(
      `GET /api/v1/dtt/sessions?limit=50&offset=${offset % 10} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${account.token}\r\n\r\n`,
    ),
  );
  let turn = Math.floor(Math.random() * requests.length);
  let settle: ((status: string) => void) | undefined;
  let received = '';
  socket.on('data', (data) => {
    received += data.toString('latin1');
    const end = received.indexOf('\r\n\r\n');
    if (end < 0) return;
    const length = Number(/^content-length: *(\d+)/im.exec(received.slice(0, end))?.[1]);
    if (received.length < end + 4 + length) return;
    const status = received.slice(9, 12);
    received = '';
    settle?.(status);
  });
  socket.on('close', () => settle?.('cut off'));
  return {
    connected: once(socket, 'connect'),
    send(): Promise<string> {
      const request = requests[turn++ % requests.length];
      if (request) socket.write(request);
      return new Promise((resolve) => {
        settle = resolve;
      });
    },
    close: () => socket.destroy(),
  };
}

type Connection = ReturnType<typeof openConnection>;

const maxInFlight = 1_000;

/** Sends requests without pause, one at a time on each connection. */
async function saturate(url: URL, accounts: readonly LoadAccount[], connections: number, seconds: number) {
  const samples: Sample[] = [];
  const began = performance.now();
  const end = began + seconds * 1_000;
  await Promise.all(
    Array.from({ length: connections }, async (_, index) => {
      const account = accounts[index % accounts.length];
      if (!account) return;
      const connection = openConnection(url, account);
      while (performance.now() < end) {
        const sent = performance.now();
        samples.push({ status: await connection.send(), took: performance.now() - sent });
      }
      connection.close();
    }),
  );
  return { samples, rate: samples.length / ((performance.now() - began) / 1_000) };
}

/** Sends requests at a fixed rate, whether or not earlier ones have had their response, as long as a connection is free. */
async function flood(url: URL, accounts: readonly LoadAccount[], rate: number, seconds: number) {
  const free: Connection[] = [];
  while (free.length < maxInFlight) {
    const account = accounts[free.length % accounts.length];
    if (!account) throw new Error('there is no account');
    const connection = openConnection(url, account);
    await connection.connected;
    free.push(connection);
  }
  const all = [...free];
  const samples: Sample[] = [];
  const inFlight = new Set<Promise<void>>();
  const began = performance.now();
  let sent = 0;
  while (performance.now() < began + seconds * 1_000) {
    const due = Math.floor(((performance.now() - began) / 1_000) * rate);
    for (; sent < due; sent++) {
      const connection = free.pop();
      if (!connection) break;
      const at = performance.now();
      const exchange = connection.send().then((status) => {
        // The first second is left out: the gateway still treats the excess as a burst.
        if (at > began + 1_000) samples.push({ status, took: performance.now() - at });
        free.push(connection);
        inFlight.delete(exchange);
      });
      inFlight.add(exchange);
    }
    // The load generator must leave the processor to the gateway.
    await sleep(2);
  }
  await Promise.all(inFlight);
  const reached = samples.length / ((performance.now() - began) / 1_000 - 1);
  for (const connection of all) connection.close();
  return { samples, rate: reached };
}

function describe(name: string, { samples, rate }: { samples: readonly Sample[]; rate: number }) {
  const of = (wanted: (status: string) => boolean) =>
    samples
      .filter(({ status }) => wanted(status))
      .map(({ took }) => took)
      .sort((one, other) => one - other);
  const accepted = of((status) => status === '200');
  const rejected = of((status) => status === '503');
  const quantile = (times: readonly number[], share: number) => times[Math.floor(times.length * share)];
  const ms = (value: number | undefined) => (value === undefined ? '' : `${value.toFixed(1)} ms`);
  const p99 = quantile(accepted, 0.99) ?? 0;
  const cells = [
    name,
    String(Math.round(rate)),
    String(Math.round((rate * accepted.length) / samples.length)),
    ms(quantile(accepted, 0.5)),
    ms(p99),
    String(rejected.length),
    ms(quantile(rejected, 0.99)),
    String(samples.length - accepted.length - rejected.length),
  ];
  return {
    line: `| ${cells.join(' | ')} |\n`,
    p99,
    others: samples.length - accepted.length - rejected.length,
  };
}

/** Prints the table. @returns what is wrong with the result. */
export async function measureOverload(folder: string, seconds = 6): Promise<string[]> {
  const server = await createServer(join(folder, 'overload'), ['max_connections = 50', 'fsync = off']);
  const complaints: string[] = [];
  try {
    for (const engine of ['PostgreSQL', 'embedded']) {
      const dataDir = join(folder, 'overload-embedded');
      const gateway = await superviseGateway({
        RESPONSE_CACHE_MB: '0',
        DATA_DIR: dataDir,
        ...(engine === 'PostgreSQL' && {
          DATABASE_URL: `postgresql://postgres@127.0.0.1:${server.port}/postgres`,
        }),
      });
      try {
        await until('the gateway is ready', gateway.isReady);
        const accounts = await addAccounts(
          engine === 'PostgreSQL' ? server.admin : connectionTo(dataDir, commandName),
          10,
        );
        const url = new URL(gateway.url);
        await saturate(url, accounts, 32, 2);
        const { rate } = await saturate(url, accounts, 32, seconds / 2);
        // The sustainable load is below the maximum, at which every burst would make a queue.
        const sustainable = describe(
          `${engine}, sustainable`,
          await flood(url, accounts, rate * 0.8, seconds),
        );
        const overload = describe(
          `${engine}, four times that`,
          await flood(url, accounts, rate * 3.2, seconds),
        );
        if (engine === 'PostgreSQL') {
          process.stdout.write(
            '\n| load | requests a second | accepted | p50 | p99 | 503s | their p99 | others |\n|---|---|---|---|---|---|---|---|\n',
          );
        }
        process.stdout.write(sustainable.line + overload.line);
        if (overload.others > 0)
          complaints.push(`${engine}: ${overload.others} requests had neither a 200 nor a 503`);
      } finally {
        await gateway.stop();
      }
    }
  } finally {
    await server.stop('SIGQUIT');
  }
  return complaints;
}
