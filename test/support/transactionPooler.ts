/**
 * A pooler in transaction mode that can track named prepared statements across sessions, as PgBouncer does since 1.21; the
 * PgBouncer of Debian may be older. It assigns the session that was used longest ago, so that no client gets the same one twice
 * in a row if there are others.
 */

import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import pg from 'pg';
import { message } from '../../src/database/embedded/protocol.ts';

export interface TransactionPooler {
  readonly url: string;
  /** Switches the tracking of names on or off, as if another pooler took over. The sessions stay. */
  carryNames(does: boolean): void;
  close(): Promise<void>;
}

interface Session {
  readonly stream: Socket;
  /** The statements that the session knows, by the names that the pooler gives them. */
  readonly names: Set<string>;
  client?: Client | undefined;
}

interface Client {
  readonly id: number;
  readonly socket: Socket;
  /** The statements of the client by their names: the rest of their Parse message, with the text and the parameter types. */
  readonly statements: Map<string, Buffer>;
  /** Messages that wait for a session. */
  waiting: Buffer[];
  session?: Session | undefined;
  /** For each Parse message in flight: whether the pooler sent it without a request of the client. */
  parsing: boolean[];
  /** Whether the last message ended a request (Query or Sync). */
  isWhole: boolean;
}

export async function openTransactionPooler(url: string, size: number): Promise<TransactionPooler> {
  let carries = true;
  let clients = 0;
  const sessions = await Promise.all(Array.from({ length: size }, () => openSession(url)));
  const idle = sessions.map(({ session }) => session);
  const line: Client[] = [];
  const sockets = new Set<Socket>();

  function serve(client: Client): void {
    if (client.waiting.length === 0) return;
    if (!client.session) {
      const session = idle.shift();
      if (!session) {
        if (!line.includes(client)) line.push(client);
        return;
      }
      client.session = session;
      session.client = client;
    }
    for (const each of client.waiting.splice(0)) send(client, client.session, each);
  }

  function send(client: Client, session: Session, given: Buffer): void {
    const letter = String.fromCharCode(given[0] ?? 0);
    client.isWhole = letter === 'Q' || letter === 'S';
    if (carries) for (const each of renamed(client, session, letter, given)) session.stream.write(each);
    else session.stream.write(given);
  }

  function release(session: Session): void {
    const { client } = session;
    if (client) client.session = undefined;
    session.client = undefined;
    idle.push(session);
    const next = line.shift();
    if (next) serve(next);
  }

  for (const { session, onMessage } of sessions)
    onMessage((given) => {
      const { client } = session;
      if (!client) return;
      const letter = String.fromCharCode(given[0] ?? 0);
      if (carries && letter === '1' && client.parsing.shift()) return;
      client.socket.write(given);
      if (letter !== 'Z') return;
      client.parsing = [];
      if (given[5] === 'I'.charCodeAt(0) && client.isWhole && client.waiting.length === 0) release(session);
    });

  const server = createServer((socket) => {
    sockets.add(socket);
    const id = ++clients;
    const client: Client = { id, socket, statements: new Map(), waiting: [], parsing: [], isWhole: true };
    socket.on('error', () => {});
    socket.on('close', () => {
      sockets.delete(socket);
      // Ends the client's transaction, so that the session can be used again.
      if (client.session) client.session.stream.write(message('Q', 'ROLLBACK'));
    });
    socket.once('data', () => {
      const key = Buffer.alloc(8, 1);
      socket.write(
        Buffer.concat([message('R', Buffer.alloc(4)), message('K', key), message('Z', Buffer.from('I'))]),
      );
      onMessages(socket, (given) => {
        if (given[0] === 'X'.charCodeAt(0)) return;
        client.waiting.push(Buffer.from(given));
        serve(client);
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const near = new URL(url);
  near.host = `127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`;
  return {
    url: near.href,
    carryNames(does) {
      carries = does;
    },
    async close() {
      server.close();
      for (const socket of [...sockets, ...sessions.map(({ session }) => session.stream)]) socket.destroy();
      await once(server, 'close');
    },
  };
}

/** The message with the pooler's own names, after a Parse message for a statement that the session does not know. */
function renamed(client: Client, session: Session, letter: string, given: Buffer): Buffer[] {
  const ownName = (name: string) => `pooler_${client.id}_${name}`;
  if (letter === 'P') {
    const name = textAt(given, 5);
    client.parsing.push(false);
    if (name === '') return [given];
    const rest = given.subarray(5 + Buffer.byteLength(name) + 1);
    client.statements.set(name, rest);
    session.names.add(ownName(name));
    return [message('P', ownName(name), rest)];
  }
  if (letter === 'B') {
    const portal = textAt(given, 5);
    const name = textAt(given, 5 + Buffer.byteLength(portal) + 1);
    if (name === '') return [given];
    const rest = given.subarray(5 + Buffer.byteLength(portal) + 1 + Buffer.byteLength(name) + 1);
    const bind = message('B', portal, ownName(name), rest);
    const parsed = client.statements.get(name);
    if (session.names.has(ownName(name)) || !parsed) return [bind];
    session.names.add(ownName(name));
    client.parsing.push(true);
    return [message('P', ownName(name), parsed), bind];
  }
  if (letter === 'C' && given[5] === 'S'.charCodeAt(0)) {
    const name = textAt(given, 6);
    client.statements.delete(name);
    session.names.delete(ownName(name));
    return [message('C', Buffer.from('S'), ownName(name))];
  }
  return [given];
}

async function openSession(url: string) {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  const stream = client.connection.stream as Socket;
  stream.removeAllListeners('data');
  const session: Session = { stream, names: new Set() };
  return { session, onMessage: (tell: (given: Buffer) => void) => onMessages(stream, tell) };
}

/** Calls back with each complete message. */
function onMessages(socket: Socket, tell: (given: Buffer) => void): void {
  let rest = Buffer.alloc(0);
  socket.on('data', (data: Buffer) => {
    rest = Buffer.concat([rest, data]);
    while (rest.length >= 5) {
      const length = 1 + rest.readInt32BE(1);
      if (rest.length < length) return;
      tell(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
  });
}

/** The text from an offset in a message up to the next zero byte. */
function textAt(buffer: Buffer, at: number): string {
  return buffer.toString('utf8', at, buffer.indexOf(0, at));
}
