/** The least that Node can do: a `node:http` server that sends the same prepared response to every request. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { announce } from './listen.ts';

export interface BareResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

// The benchmark that starts this wrote it.
const { status, headers, body } = JSON.parse(process.env.BARE_RESPONSE ?? '') as BareResponse;
const bytes = Buffer.from(body);

const server = createServer((_request, response) => {
  response.writeHead(status, headers).end(bytes);
});
server.listen(0, '127.0.0.1', () => announce((server.address() as AddressInfo).port));
process.once('SIGTERM', () => process.exit());
