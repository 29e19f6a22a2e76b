/** One WebSocket, by the protocol `graphql-transport-ws` (PROTOCOL.md of graphql-ws). */

import {
  CloseCode,
  type ConnectionInitMessage,
  MessageType,
  parseMessage,
  type SubscribeMessage,
} from 'graphql-ws';
import type { RawData, WebSocket } from 'ws';
import { messages } from '../../errors.ts';
import { type Exchange, endExchange } from '../../http/exchange.ts';
import { isRequestTooDeep } from '../limits.ts';
import type { UserQuota } from '../userQuota.ts';
import { authenticateSocket, authorizationOf, CloseSocket, closeCodes, unauthorized } from './handshake.ts';
import type { PipelineAccess } from './operations.ts';
import { createSocketOperations, type SocketOperations } from './socketOperations.ts';
import { createSocketWriter, type SocketWriter } from './socketWriter.ts';

/** How long, in milliseconds, the gateway waits for a client. */
export interface SocketTimeouts {
  /** Until its `connection_init`. */
  readonly init: number;
  /** From one ping to the next, by which the client must have responded to the last. */
  readonly ping: number;
  /** Until it reads what it was sent, while more waits to be sent. */
  readonly unread: number;
  /** Until it closes its side as well. */
  readonly goodbye: number;
  /** Until it reads what it was sent, when the gateway closes. */
  readonly closing: number;
}

export const socketTimeouts: SocketTimeouts = {
  init: 5_000,
  ping: 12_000,
  unread: 30_000,
  goodbye: 2_000,
  closing: 5_000,
};

export interface SocketOptions {
  readonly operations: PipelineAccess;
  /** How many sockets each user may have. */
  readonly connectionQuota: UserQuota;
  readonly timeouts: SocketTimeouts;
  /** Called when the client is authenticated. */
  onKnown(): void;
}

export interface SocketConnection {
  close(reason: CloseSocket): void;
  /**
   * Closes once all operations have sent their results. Clients are not told that subscriptions are complete: they
   * subscribe again elsewhere.
   */
  leave(): Promise<void>;
}

/** How many characters the id of an operation may have. Every message of the operation repeats it. */
const longestId = 256;

/** How many characters a message may have that is not an operation of an authenticated client. */
const longestOther = 8 * 1024;

/** How many messages that ask for nothing may come from one ping of the gateway's to the next. */
const mostIdle = 100;

/** The state of an open socket. */
interface Session {
  readonly opening: Exchange;
  readonly options: SocketOptions;
  readonly close: SocketConnection['close'];
  readonly writer: SocketWriter;
  readonly running: SocketOperations;
  isOpen(): boolean;
  /** Messages that were read, and wait until the client reads or an operation ends. */
  readonly unprocessed: string[];
  /** Takes messages, and reads further, unless the client does not read, or has enough under way. */
  pumpMessages(): void;
  /** How many messages, and frames of pings and pongs, have asked for nothing since the last ping of the gateway's. */
  idle: number;
  state: 'new' | 'connecting' | 'ready' | 'leaving';
  authorization: string | undefined;
  /** Called when the socket is closed. */
  readonly cleanups: (() => void)[];
}

/** @param opening the exchange of the request that has become the socket. */
export function serveWebSocket(
  socket: WebSocket,
  opening: Exchange,
  options: SocketOptions,
): SocketConnection {
  const session = createSession(socket, opening, options);
  const { close, running } = session;
  socket.on('message', (data: RawData, isBinary: boolean) => {
    if (isBinary) return close(new CloseSocket(CloseCode.BadRequest, 'Messages are text'));
    session.unprocessed.push(String(data));
    session.pumpMessages();
  });
  socket.on('ping', (data) => {
    countFrame(socket, session);
    session.writer.pong(data);
    session.pumpMessages();
  });
  socket.on('pong', () => countFrame(socket, session));
  if (socket.protocol === '')
    close(new CloseSocket(CloseCode.SubprotocolNotAcceptable, 'Subprotocol not acceptable'));

  return {
    close,
    async leave() {
      session.state = 'leaving';
      const cut = setInterval(() => {
        if (session.writer.isFull()) socket.terminate();
      }, options.timeouts.closing);
      await running.finish();
      clearInterval(cut);
      close(new CloseSocket(closeCodes.goingAway, 'The gateway closes'));
    },
  };
}

function createSession(socket: WebSocket, opening: Exchange, options: SocketOptions): Session {
  const { operations, timeouts } = options;
  const close = createClose(socket, timeouts.goodbye);
  const isFull = () => writer.isFull() || running.isFull();
  const pumpMessages = () => {
    processMessages(session, isFull);
    if (isFull() && session.isOpen()) socket.pause();
    else socket.resume();
  };
  const writer = createSocketWriter(socket, timeouts.unread, pumpMessages);
  const running = createSocketOperations({
    write: writer.write,
    run: (number, body) => {
      const { authorization } = session;
      const id = `${opening.id}.${number}`;
      return operations.run(opening.request, { id, transport: 'websocket', authorization, body });
    },
    onUnauthorized: () => close(unauthorized('invalid')),
    onRoom: pumpMessages,
  });
  const init = setTimeout(() => {
    if (session.state === 'new')
      close(new CloseSocket(CloseCode.ConnectionInitialisationTimeout, 'Connection initialisation timeout'));
  }, timeouts.init);
  const session: Session = {
    opening,
    options,
    close,
    writer,
    running,
    isOpen: () => socket.readyState === socket.OPEN,
    unprocessed: [],
    idle: 0,
    pumpMessages,
    state: 'new',
    authorization: undefined,
    cleanups: [
      () => clearTimeout(init),
      keepAlive(socket, timeouts.ping, () => {
        session.idle = 0;
      }),
      running.stop,
    ],
  };
  // Errors in the frames of the client: ws tells the client, and closes the socket.
  socket.on('error', () => {});
  socket.once('close', (code) => {
    for (const end of session.cleanups) end();
    if (!inOrder.has(code)) opening.errorCode = String(code);
    endExchange(opening, 101);
  });
  return session;
}

/** The close codes of a client that leaves in order, or without a code. */
const inOrder = new Set([1000, 1001, 1005, 1006]);

/** Processes messages until there is no room for more: one read of the socket may bring many messages. */
function processMessages(session: Session, isFull: () => boolean): void {
  const { unprocessed, close } = session;
  while (unprocessed.length > 0 && !isFull()) {
    const text = unprocessed.shift() ?? '';
    if (!session.isOpen() || session.state === 'leaving') continue;
    try {
      if (text.length > longestOther && session.state !== 'ready') throw tooLong;
      handleMessage(session, parseMessage(text), text.length);
    } catch (error) {
      close(error instanceof CloseSocket ? error : badRequest(error));
    }
  }
}

const tooLong = new Error(
  `A message has at most ${longestOther} characters, unless it is an operation after the acknowledgement`,
);

const tooManyIdle = new CloseSocket(closeCodes.tryAgainLater, 'Too many messages that ask for nothing');

/** Counts a ping or a pong frame. A client that goes on when it was told that it sends too many is cut off. */
function countFrame(socket: WebSocket, session: Session): void {
  session.idle++;
  if (session.idle > 2 * mostIdle) socket.terminate();
  else if (session.idle > mostIdle) session.close(tooManyIdle);
}

/** @throws {Error} that says what is wrong with the message. */
function handleMessage(session: Session, message: ReturnType<typeof parseMessage>, length: number): void {
  const { writer, running } = session;
  const isOperation = message.type === MessageType.Subscribe;
  if (length > longestOther && !isOperation) throw tooLong;
  const asksForNothing = message.type === MessageType.Complete ? !running.has(message.id) : !isOperation;
  if (asksForNothing && ++session.idle > mostIdle) throw tooManyIdle;
  switch (message.type) {
    case MessageType.ConnectionInit:
      initialise(session, message);
      break;
    case MessageType.Subscribe:
      subscribe(session, message);
      break;
    case MessageType.Complete:
      running.complete(message.id);
      break;
    case MessageType.Ping:
      void writer.write(JSON.stringify({ ...message, type: MessageType.Pong }));
      break;
    case MessageType.Pong:
      break;
    default:
      throw new Error(`Clients send no messages of the type ${message.type}`);
  }
}

function subscribe({ state, running }: Session, { id, payload }: SubscribeMessage): void {
  if (state !== 'ready') throw new CloseSocket(CloseCode.Unauthorized, 'Unauthorized');
  if (id.length > longestId) throw new Error(`An id has at most ${longestId} characters`);
  if (running.has(id))
    throw new CloseSocket(CloseCode.SubscriberAlreadyExists, `Subscriber for ${id} already exists`);
  if (isRequestTooDeep(payload)) throw new Error('The operation is nested too deeply');
  running.start(id, payload);
}

function initialise(session: Session, { payload }: ConnectionInitMessage): void {
  const { opening, close } = session;
  if (session.state !== 'new')
    throw new CloseSocket(CloseCode.TooManyInitialisationRequests, 'Too many initialisation requests');
  session.state = 'connecting';
  session.authorization = authorizationOf(opening, payload);
  connect(session).catch((error: unknown) => {
    if (error instanceof CloseSocket) return close(error);
    opening.report(error);
    close(new CloseSocket(CloseCode.InternalServerError, messages.internal));
  });
}

async function connect(session: Session): Promise<void> {
  const { opening, options, authorization, close, writer, cleanups, isOpen } = session;
  const { operations, connectionQuota, onKnown } = options;
  const viewer = await authenticateSocket(opening, authorization, options);
  if (!isOpen()) return connectionQuota.release(viewer.id);
  cleanups.push(
    () => connectionQuota.release(viewer.id),
    operations.watch(viewer, () => close(unauthorized('invalid'))),
  );
  onKnown();
  if (session.state !== 'connecting') return;
  session.state = 'ready';
  const payload = { requestId: opening.id };
  await writer.write(JSON.stringify({ type: MessageType.ConnectionAck, payload }));
}

const badRequest = (error: unknown) =>
  new CloseSocket(CloseCode.BadRequest, error instanceof Error ? error.message : 'Invalid message received');

/** A function that closes the socket, and ends the connection if the client does not close its side in time. */
function createClose(socket: WebSocket, longest: number): SocketConnection['close'] {
  let cut: NodeJS.Timeout | undefined;
  socket.once('close', () => clearTimeout(cut));
  return ({ code, message }) => {
    if (cut) return;
    socket.close(code, shortened(message));
    // A paused socket would not read the client's close frame.
    socket.resume();
    cut = setTimeout(() => socket.terminate(), longest);
  };
}

/** A reason may have 123 bytes (RFC 6455, section 5.5). */
function shortened(reason: string): string {
  let text = reason.slice(0, 123);
  while (Buffer.byteLength(text) > 123) text = text.slice(0, -1);
  return text;
}

/** Sends pings, and ends the connection of a client that does not respond. Returns a function that stops the pings. */
function keepAlive(socket: WebSocket, every: number, onPing: () => void): () => void {
  let isAlive = true;
  const onSign = () => {
    isAlive = true;
  };
  socket.on('pong', onSign).on('message', onSign);
  const timer = setInterval(() => {
    // While the socket is paused, no pong can be read.
    if (!isAlive && !socket.isPaused) return socket.terminate();
    isAlive = false;
    onPing();
    if (socket.readyState === socket.OPEN) socket.ping();
  }, every);
  return () => clearInterval(timer);
}
