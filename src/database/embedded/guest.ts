/**
 * The session of a guest: a client of the embedded engine other than the gateway itself, such as psql.
 *
 * All clients share the only session of the engine, and the gateway relies on the initial state of that session. So a guest
 * uses the session for one turn at a time (`engineTurn.ts`), in three steps:
 *
 * - `begin` restores the settings that the guest had at the end of its last turn, or when it connected.
 * - `run` prepares the statements of the guest again when its messages use them.
 * - `end` saves what the guest has set and prepared, and resets the session.
 *
 * | State of a guest                                   | At the end of its turn                                     |
 * |----------------------------------------------------|------------------------------------------------------------|
 * | settings, its role, its session authorization      | reset, and restored in its next turn                       |
 * | statements prepared by messages                    | removed, and prepared again when it uses them              |
 * | PREPARE, temporary tables, cursors WITH HOLD,      | lost, with a notice (a pooler in transaction mode loses    |
 * | advisory locks, LISTEN                             | them as well)                                              |
 *
 * The session then listens again on the channels of the gateway.
 */

import type { Setting } from './clientMessages.ts';
import type { Engine, Run } from './engine.ts';
import { message } from './protocol.ts';
import { type Step, stepsOf } from './steps.ts';

export interface GuestSession {
  /** Restores the guest's settings. Fails when one of them cannot be set any more. */
  begin(): Promise<void>;
  /** Runs messages of the guest during its turn. */
  readonly run: Run;
  /** Saves what the guest has set and prepared, and resets the session. */
  end(): Promise<EndOfTurn>;
}

export interface EndOfTurn {
  /** The channels on which notifications may have been missed. */
  readonly unheard: readonly string[];
  /** The state of the guest that ended with its turn. */
  readonly lost: readonly string[];
  /** The error if the settings of the guest could not be read, in which case it cannot go on. */
  readonly error?: unknown;
}

/** @param given the settings with which the guest connected. */
export function createGuestSession(engine: Engine, given: readonly Setting[]): GuestSession {
  const statements = createStatements(engine.run);
  let settings = given;
  let before: State = { channels: [], next: '' };

  /** Saves the state of the guest. */
  async function note(): Promise<EndOfTurn> {
    const found = await findAll(engine);
    settings = found.settings;
    statements.noteListed(found.statements);
    const { after } = found;
    const isListening = after?.channels.some((channel) => !before.channels.includes(channel));
    return {
      // The guest may have disabled triggers or used UNLISTEN. So if it wrote anything, any data may have changed.
      unheard: after?.next === before.next ? [] : before.channels,
      lost: isListening ? [...found.lost, 'LISTEN'] : found.lost,
    };
  }

  return {
    async begin() {
      const [[found]] = await engine.askAll<[State]>([state]);
      if (found) before = found;
      for (const { name, setting } of settings) await engine.ask(set, [name, setting]);
      // A query with parameters leaves an unnamed prepared statement behind. A simple query removes it.
      if (settings.length > 0) await engine.askAll(['SELECT']);
    },
    async run(messages, onReply) {
      for (const step of stepsOf(messages)) {
        await statements.prepareFor(step, onReply);
        await engine.run(step.messages, onReply);
        statements.noteStep(step);
      }
    },
    async end() {
      const noted = await note().catch((error: unknown) => ({ unheard: before.channels, lost: [], error }));
      await engine.reset(resetTo(before));
      statements.noteReset();
      return noted;
    },
  };
}

/** State of the session and the database that tells what a guest has changed. */
interface State {
  channels: string[];
  /** The id of the next transaction that writes. */
  next: string;
}

/** The commands that reset the session. */
const resetTo = ({ channels }: State): string[] => [
  // PGlite has no authenticated user to return to: DISCARD ALL alone would keep the user that the guest has become.
  `SET SESSION AUTHORIZATION ${superuser}`,
  'RESET ROLE',
  'DISCARD ALL',
  ...channels.map((channel) => `LISTEN "${channel.replaceAll('"', '""')}"`),
];

/** The user of every client in PGlite. */
const superuser = 'postgres';

const set = 'SELECT pg_catalog.set_config($1, $2, false)';

// The guest's search_path may resolve names to other objects. So all names are qualified until it is reset, operators too.

const state = `
  SELECT ARRAY(SELECT pg_catalog.pg_listening_channels()) AS channels,
    pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::pg_catalog.text AS next`;

/** The settings that the guest has changed, without those that each transaction sets when it begins. */
const changedSettings = `
  SELECT name, setting FROM pg_catalog.pg_settings
  WHERE source OPERATOR(pg_catalog.=) 'session' AND name OPERATOR(pg_catalog.!~) '^transaction_'`;

/** Two more settings, which the list leaves out. The role is last, since setting the session authorization resets it. */
const identity = `
  SELECT 'session_authorization' AS name, session_user::pg_catalog.text AS setting
  UNION ALL SELECT 'role', pg_catalog.current_setting('role')`;

const isChanged = ({ name, setting }: Setting) => setting !== (name === 'role' ? 'none' : superuser);

/** The statements that messages have prepared. Those of PREPARE are left out: their text is that of the whole query. */
const listedStatements = `
  SELECT name, statement AS text, parameter_types::pg_catalog.oid[] AS types
  FROM pg_catalog.pg_prepared_statement() WHERE NOT from_sql`;

const usualNames = 'SET search_path TO pg_catalog';

const whatIsLost = `
  SELECT 'temporary tables' AS what WHERE EXISTS (SELECT FROM pg_class WHERE relnamespace = pg_my_temp_schema())
  UNION ALL SELECT 'PREPARE' WHERE EXISTS (SELECT FROM pg_prepared_statement() WHERE from_sql)
  UNION ALL SELECT 'cursors WITH HOLD' WHERE EXISTS (SELECT FROM pg_cursor() WHERE is_holdable)
  UNION ALL SELECT 'advisory locks' WHERE EXISTS (SELECT FROM pg_lock_status() WHERE locktype = 'advisory')`;

/** Reads the whole state at the end of a turn with one call. */
async function findAll(engine: Engine) {
  const [[after], settings, identities, statements, , lost] = await engine.askAll<
    [State, Setting, Setting, Statement, unknown, { what: string }]
  >([state, changedSettings, identity, listedStatements, usualNames, whatIsLost]);
  return {
    after,
    settings: [...settings, ...identities.filter(isChanged)],
    statements,
    lost: lost.map(({ what }) => what),
  };
}

interface Statement {
  name: string;
  text: string;
  types: number[];
}

/** The statements that a guest has prepared by messages in any of its turns, and which of them the session has now. */
function createStatements(run: Run) {
  /** The Parse message of each statement, by name. */
  const prepared = new Map<string, Buffer>();
  /** The names of the statements that the session has now. */
  const live = new Set<string>();
  return {
    /** Prepares the statements that a step may use and the session does not have. */
    async prepareFor(step: Step, onReply: (data: Buffer) => void): Promise<void> {
      for (const name of step.mayUseAll ? prepared.keys() : step.uses) {
        const parse = prepared.get(name);
        if (!parse || live.has(name)) continue;
        const replies: Buffer[] = [];
        await run(parse, (data) => replies.push(data));
        const reply = Buffer.concat(replies);
        const isDone = reply.subarray(-parseComplete.length).equals(parseComplete);
        if (isDone) live.add(name);
        // The guest does not expect a ParseComplete. An error is passed on, since it explains why the step fails.
        onReply(isDone ? reply.subarray(0, -parseComplete.length) : reply);
      }
    },
    /** Notes what the catalog does not show: closed statements, and the one without a name. */
    noteStep({ closes, unnamed }: Step): void {
      for (const name of closes) prepared.delete(name);
      if (!unnamed) return;
      prepared.set('', unnamed);
      live.add('');
    },
    /** Notes the named statements that the catalog of the session lists. */
    noteListed(statements: readonly Statement[]): void {
      for (const name of live) if (name !== '') prepared.delete(name);
      for (const statement of statements) prepared.set(statement.name, parseMessage(statement));
    },
    /** Notes that the session was reset and has no statements any more. */
    noteReset(): void {
      live.clear();
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
