/**
 * The session of a guest: of a client of the embedded engine that is not the gateway itself.
 *
 * The engine has one session for everybody, and the gateway relies on it being as it was at the start. So a guest
 * has it for a turn: what it has set and prepared is given back to it when it needs it, and at the end of each turn
 * the session is made new. What cannot be given back ends with the turn, as it does behind a pooler in transaction
 * mode.
 */

import { message, messagesIn, textAt, type } from './protocol.ts';

/** Hands messages to the engine, and what it says on, in pieces cut anywhere. */
export type Run = (messages: Uint8Array, onReply: (data: Buffer) => void) => Promise<void>;

/** An engine, as the session of a guest needs it. */
export interface Engine {
  readonly run: Run;
  ask<Row>(sql: string, values?: unknown[]): Promise<Row[]>;
  /** Asks several things at once. Gives the rows of each. */
  askAll<Rows extends unknown[]>(sql: readonly string[]): Promise<{ [Each in keyof Rows]: Rows[Each][] }>;
  /** Runs commands without which there is nothing to rely on, and sees to it that they succeed. */
  reset(commands: readonly string[]): Promise<void>;
}

export interface GuestSession {
  /** Makes the engine's session that of the guest. Fails when it cannot have what it has set. */
  begin(): Promise<void>;
  /** Runs messages of the guest, in its turn. */
  readonly run: Run;
  /** Notes what the guest has set and prepared, and makes the session new. */
  end(): Promise<EndOfTurn>;
}

export interface EndOfTurn {
  /** The channels on which something may have been announced that nobody heard. */
  readonly unheard: readonly string[];
  /** What the guest had that has ended with its turn. */
  readonly ended: readonly string[];
  /** Why the guest cannot go on: what it has set could not be read. */
  readonly error?: unknown;
}

export interface Setting {
  readonly name: string;
  readonly setting: string;
}

interface Standing {
  channels: string[];
  /** The number of the next transaction that writes. */
  next: string;
}

// Names are qualified in what is asked before the guest's search_path is reset, those of operators too.

const standing = `
  SELECT ARRAY(SELECT pg_catalog.pg_listening_channels()) AS channels,
    pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::pg_catalog.text AS next`;

/** Those of a transaction are set by its beginning. */
const changedSettings = `
  SELECT name, setting FROM pg_catalog.pg_settings
  WHERE source OPERATOR(pg_catalog.=) 'session' AND name OPERATOR(pg_catalog.!~) '^transaction_'`;

/** These decide what the guest may do, and are not in the list. The second goes last, since the first resets it. */
const identity = `
  SELECT 'session_authorization' AS name, session_user::pg_catalog.text AS setting
  UNION ALL SELECT 'role', pg_catalog.current_setting('role')`;

const isChanged = ({ name, setting }: Setting) => setting !== (name === 'role' ? 'none' : superuser);

/** Who everybody is to PGlite. */
const superuser = 'postgres';

const set = 'SELECT pg_catalog.set_config($1, $2, false)';

interface Statement {
  name: string;
  text: string;
  types: number[];
}

/** What was prepared by messages. What SQL has prepared is listed with the whole text in which it stood. */
const preparedStatements = `
  SELECT name, statement AS text, parameter_types::pg_catalog.oid[] AS types
  FROM pg_catalog.pg_prepared_statement() WHERE NOT from_sql`;

const usualNames = 'SET search_path TO pg_catalog';

const whatEnds = `
  SELECT 'temporary tables' AS what WHERE EXISTS (SELECT FROM pg_class WHERE relnamespace = pg_my_temp_schema())
  UNION ALL SELECT 'PREPARE' WHERE EXISTS (SELECT FROM pg_prepared_statement() WHERE from_sql)
  UNION ALL SELECT 'cursors WITH HOLD' WHERE EXISTS (SELECT FROM pg_cursor() WHERE is_holdable)
  UNION ALL SELECT 'advisory locks' WHERE EXISTS (SELECT FROM pg_lock_status() WHERE locktype = 'advisory')`;

/** @param given what the guest has set when it connected. */
export function createGuestSession(engine: Engine, given: readonly Setting[]): GuestSession {
  let own = given;
  let before: Standing = { channels: [], next: '' };
  /** The messages by which the guest has prepared its statements. */
  const prepared = new Map<string, Buffer>();
  /** The names of those that the session has in this turn. */
  const live = new Set<string>();

  async function note(): Promise<EndOfTurn> {
    const [[after], settings, who, statements, , endings] = await engine.askAll<
      [Standing, Setting, Setting, Statement, unknown, { what: string }]
    >([standing, changedSettings, identity, preparedStatements, usualNames, whatEnds]);
    own = [...settings, ...who.filter(isChanged)];
    for (const name of live) if (name !== '') prepared.delete(name);
    for (const statement of statements) prepared.set(statement.name, parseMessage(statement));
    const ended = endings.map(({ what }) => what);
    if (after?.channels.some((channel) => !before.channels.includes(channel))) ended.push('LISTEN');
    // Its triggers may have been silenced, or LISTEN undone: who wrote anything may have changed everything.
    return { unheard: after?.next === before.next ? [] : before.channels, ended };
  }

  async function prepare(names: Iterable<string>, onReply: (data: Buffer) => void): Promise<void> {
    for (const name of names) {
      const parse = prepared.get(name);
      if (!parse || live.has(name)) continue;
      const replies: Buffer[] = [];
      await engine.run(parse, (data) => replies.push(data));
      const reply = Buffer.concat(replies);
      const isDone = reply.subarray(-parseComplete.length).equals(parseComplete);
      if (isDone) live.add(name);
      // The guest did not ask for it now, but for what follows, of which an error says why it fails.
      onReply(isDone ? reply.subarray(0, -parseComplete.length) : reply);
    }
  }

  return {
    async begin() {
      const [[found]] = await engine.askAll<[Standing]>([standing]);
      if (found) before = found;
      for (const { name, setting } of own) await engine.ask(set, [name, setting]);
      // What is asked with values leaves a statement without a name, which is none of the guest's.
      if (own.length > 0) await engine.askAll(['SELECT']);
    },
    async run(messages, onReply) {
      for (const step of stepsOf(messages)) {
        await prepare(step.all ? prepared.keys() : step.uses, onReply);
        await engine.run(step.messages, onReply);
        for (const name of step.closes) prepared.delete(name);
        if (step.unnamed) {
          prepared.set('', step.unnamed);
          live.add('');
        }
      }
    },
    async end() {
      const noted = await note().catch((error: unknown) => ({ unheard: before.channels, ended: [], error }));
      live.clear();
      await engine.reset([
        // In PGlite there is no user to go back to: DISCARD ALL would leave the one that the guest has become.
        `SET SESSION AUTHORIZATION ${superuser}`,
        'RESET ROLE',
        'DISCARD ALL',
        ...before.channels.map((channel) => `LISTEN "${channel.replaceAll('"', '""')}"`),
      ]);
      return noted;
    },
  };
}

const parseComplete = message('1');

function parseMessage({ name, text, types }: Statement): Buffer {
  const oids = Buffer.alloc(2 + 4 * types.length);
  oids.writeInt16BE(types.length);
  for (const [index, oid] of types.entries()) oids.writeUInt32BE(oid, 2 + 4 * index);
  return message('P', name, text, oids);
}

/** Messages up to one behind which the engine listens again, whatever became of those before. */
interface Step {
  readonly messages: Buffer;
  /** The names of the prepared statements that they use. */
  readonly uses: ReadonlySet<string>;
  /** Whether they may use any. */
  readonly all: boolean;
  readonly closes: ReadonlySet<string>;
  /** The last that prepares the statement without a name, which no catalog lists. */
  readonly unnamed: Buffer | undefined;
}

/** Whether SQL could use a statement that was prepared by a message. Too often costs little. */
const usesStatements = /\b(?:execute|deallocate|pg_prepared_statements?)\b/i;

const nothingUsed = () => ({
  messages: [] as Buffer[],
  uses: new Set<string>(),
  closes: new Set<string>(),
  all: false,
  unnamed: undefined as Buffer | undefined,
});

function* stepsOf(messages: Uint8Array): Generator<Step> {
  let step = nothingUsed();
  let isOver = false;
  for (const each of messagesIn(Buffer.from(messages.buffer, messages.byteOffset, messages.byteLength))) {
    const kind = each[0];
    // What a COPY waits for has to be at hand when it runs.
    if (isOver && kind !== type('f') && kind !== type('d') && kind !== type('c')) {
      yield { ...step, messages: Buffer.concat(step.messages) };
      step = nothingUsed();
    }
    isOver = kind === type('Q') || kind === type('S');
    step.messages.push(each);
    const isOfStatement = each[5] === type('S');
    if (kind === type('B')) step.uses.add(textAt(each, each.indexOf(0, 5) + 1));
    if (kind === type('D') && isOfStatement) step.uses.add(textAt(each, 6));
    if (kind === type('C') && isOfStatement) step.closes.add(textAt(each, 6));
    if (kind === type('P')) {
      const name = textAt(each, 5);
      step.closes.delete(name);
      // The engine is to say so if there is one of that name.
      if (name === '') step.unnamed = each;
      else step.uses.add(name);
    }
    if (kind === type('Q')) {
      step.closes.add('');
      step.unnamed = undefined;
    }
    if (kind === type('Q') || kind === type('P')) step.all ||= usesStatements.test(each.toString('latin1'));
  }
  yield { ...step, messages: Buffer.concat(step.messages) };
}
