/** HTTP over a plain socket, so that a test can send what is not HTTP. */

import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'vitest';

export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Opens a connection to which a test may write anything. */
export async function openRaw(url: string) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let received = '';
  socket.setEncoding('latin1').on('data', (data) => {
    received += data;
  });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => {}).once('end', () => socket.end());
  await once(socket, 'connect');
  return {
    socket,
    /** All bytes that were received so far, as Latin-1. */
    received: () => received,
    /** Waits for the end of the connection. @returns all bytes that were received. */
    async ended() {
      await closed;
      return received;
    },
  };
}

/** Parses all responses in the received text, without interim ones. Fails if a part of it is no response. */
export function parseResponses(received: string): RawResponse[] {
  const responses: RawResponse[] = [];
  for (let rest = received; rest !== ''; ) {
    const end = rest.indexOf('\r\n\r\n');
    expect(end, `no end of a head in ${JSON.stringify(rest)}`).toBeGreaterThan(0);
    const [start = '', ...lines] = rest.slice(0, end).split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) [\w ]+$/.exec(start)?.[1]);
    expect(status, start).toBeGreaterThan(0);
    const headers = Object.fromEntries(
      lines.map((line) => {
        const [, name = '', value = ''] = /^([\w-]+): (.*)$/.exec(line) ?? expect.fail(line);
        return [name.toLowerCase(), value];
      }),
    );
    const length = Number(headers['content-length'] ?? 0);
    const body = rest.slice(end + 4, end + 4 + length);
    if (status >= 200) {
      expect(body).toHaveLength(length);
      responses.push({ status, headers, body });
    }
    rest = rest.slice(end + 4 + length);
  }
  return responses;
}
