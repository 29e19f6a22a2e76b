/**
 * The session of a guest: of a client of the embedded engine that is not the gateway itself, such as psql.
 *
 * The engine has one session for everybody, and the gateway relies on it being as it was at the start. So a guest has
 * it for a turn (`turn.ts`), in three steps:
 *
 * - `begin` sets again what the guest had set by the end of its turn before, or when it connected.
 * - `run` prepares again the statements that its messages use, as soon as they do.
 * - `end` reads what the guest has set and prepared by now, and makes the session what the gateway relies on.
 *
 * | What a guest has                                   | At the end of its turn                                     |
 * |----------------------------------------------------|------------------------------------------------------------|
 * | settings, its role, its session authorization      | reset, and given back in its next turn                     |
 * | statements prepared by messages                    | removed, and prepared again when it uses them              |
 * | PREPARE, temporary tables, cursors WITH HOLD,      | lost, which a notice tells it (a pooler in transaction     |
 * | advisory locks, LISTEN                             | mode loses them as well)                                   |
 *
 * The channels on which the session listened at the beginning, which are the gateway's, are listened to again.
 */

import type { Setting } from './clientMessages.ts';
import type { Engine, Run } from './engine.ts';
import { message } from './protocol.ts';
import { type Step, stepsOf } from './steps.ts';

export interface GuestSession {
  /** Makes the engine's session that of the guest. Fails when it cannot have what it has set. */
  begin(): Promise<void>;
  /** Runs messages of the guest, in its turn. */
  readonly run: Run;
  /** Notes what the guest has set and prepared, and resets the session. */
  end(): Promise<EndOfTurn>;
}

export interface EndOfTurn {
  /** The channels on which something may have been announced that nobody heard. */
  readonly unheard: readonly string[];
  /** What the guest had that has ended with its turn. */
  readonly lost: readonly string[];
  /** Why the guest cannot go on: what it has set could not be read. */
  readonly error?: unknown;
}

/** @param given what the guest has set when it connected. */
export function createGuestSession(engine: Engine, given: readonly Setting[]): GuestSession {
  const statements = createStatements(engine.run);
  let settings = given;
  let before: State = { channels: [], next: '' };

  /** Notes what the guest has by now. */
  async function note(): Promise<EndOfTurn> {
    const found = await findAll(engine);
    settings = found.settings;
    statements.noteListed(found.statements);
    const { after } = found;
    const isListening = after?.channels.some((channel) => !before.channels.includes(channel));
    return {
      // The guest may have silenced triggers, or undone LISTEN: if it wrote anything, anything may have changed.
      unheard: after?.next === before.next ? [] : before.channels,
      lost: isListening ? [...found.lost, 'LISTEN'] : found.lost,
    };
  }

  return {
    async begin() {
      const [[found]] = await engine.askAll<[State]>([state]);
      if (found) before = found;
      for (const { name, setting } of settings) await engine.ask(set, [name, setting]);
      // What is asked with values leaves a statement without a name, which is none of the guest's.
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

/** What the guest must not change, and could. */
interface State {
  channels: string[];
  /** The number of the next transaction that writes. */
  next: string;
}

/** Makes the session what it was. */
const resetTo = ({ channels }: State): string[] => [
  // In PGlite there is no user to go back to: DISCARD ALL would leave the one that the guest has become.
  `SET SESSION AUTHORIZATION ${superuser}`,
  'RESET ROLE',
  'DISCARD ALL',
  ...channels.map((channel) => `LISTEN "${channel.replaceAll('"', '""')}"`),
];

/** Who everybody is to PGlite. */
const superuser = 'postgres';

const set = 'SELECT pg_catalog.set_config($1, $2, false)';

// The guest's search_path may lead names anywhere: until it is set, all are qualified, those of operators too.

const state = `
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

/** What was prepared by messages. What SQL has prepared is listed with the whole text in which it stood. */
const listedStatements = `
  SELECT name, statement AS text, parameter_types::pg_catalog.oid[] AS types
  FROM pg_catalog.pg_prepared_statement() WHERE NOT from_sql`;

const usualNames = 'SET search_path TO pg_catalog';

const whatIsLost = `
  SELECT 'temporary tables' AS what WHERE EXISTS (SELECT FROM pg_class WHERE relnamespace = pg_my_temp_schema())
  UNION ALL SELECT 'PREPARE' WHERE EXISTS (SELECT FROM pg_prepared_statement() WHERE from_sql)
  UNION ALL SELECT 'cursors WITH HOLD' WHERE EXISTS (SELECT FROM pg_cursor() WHERE is_holdable)
  UNION ALL SELECT 'advisory locks' WHERE EXISTS (SELECT FROM pg_lock_status() WHERE locktype = 'advisory')`;

/** Asks for all that is to be known at the end of a turn, at once. */
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

/** What a guest has prepared by messages, in any of its turns, and what the session has of that in this turn. */
function createStatements(run: Run) {
  /** The messages that prepare them, by name. */
  const prepared = new Map<string, Buffer>();
  /** The names of those that the session has. */
  const live = new Set<string>();
  return {
    /** Prepares what a step may use and the session does not have. */
    async prepareFor(step: Step, onReply: (data: Buffer) => void): Promise<void> {
      for (const name of step.mayUseAll ? prepared.keys() : step.uses) {
        const parse = prepared.get(name);
        if (!parse || live.has(name)) continue;
        const replies: Buffer[] = [];
        await run(parse, (data) => replies.push(data));
        const reply = Buffer.concat(replies);
        const isDone = reply.subarray(-parseComplete.length).equals(parseComplete);
        if (isDone) live.add(name);
        // The guest did not ask for it now, but for what follows, of which an error says why it fails.
        onReply(isDone ? reply.subarray(0, -parseComplete.length) : reply);
      }
    },
    /** Notes what only the messages of a step say. */
    noteStep({ closes, unnamed }: Step): void {
      for (const name of closes) prepared.delete(name);
      if (!unnamed) return;
      prepared.set('', unnamed);
      live.add('');
    },
    /** Notes which statements there are with a name, as the session's catalog has them. */
    noteListed(statements: readonly Statement[]): void {
      for (const name of live) if (name !== '') prepared.delete(name);
      for (const statement of statements) prepared.set(statement.name, parseMessage(statement));
    },
    /** Notes that the session has none any more. */
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
