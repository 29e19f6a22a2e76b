/** Splits the messages of a guest into steps, and finds the prepared statements that each step uses. */

import { messagesIn, textAt, type } from './protocol.ts';

/** Messages up to a Query or Sync, after which the engine accepts messages again even if one of these has failed. */
export interface Step {
  readonly messages: Buffer;
  /** The names of the prepared statements that its messages use. */
  readonly uses: ReadonlySet<string>;
  /** Whether it may use any prepared statement, as SQL can with EXECUTE. */
  readonly mayUseAll: boolean;
  /** The names of the prepared statements that its messages close. */
  readonly closes: ReadonlySet<string>;
  /** The last Parse message for the statement without a name, which the catalog does not list. */
  readonly unnamed: Buffer | undefined;
}

/** Matches SQL that may use a statement that a message has prepared. A false positive costs little. */
const usesStatements = /\b(?:execute|deallocate|pg_prepared_statements?)\b/i;

/** The messages with the rows of a COPY, which have to be in the same step as the COPY. */
const ofCopy = ['f', 'd', 'c'].map(type);

export function* stepsOf(messages: Uint8Array): Generator<Step> {
  let step = emptyStep();
  let isOver = false;
  for (const each of messagesIn(Buffer.from(messages.buffer, messages.byteOffset, messages.byteLength))) {
    const kind = each[0] ?? 0;
    if (isOver && !ofCopy.includes(kind)) {
      yield { ...step, messages: Buffer.concat(step.messages) };
      step = emptyStep();
    }
    isOver = kind === type('Q') || kind === type('S');
    step.messages.push(each);
    noteStatements(step, kind, each);
  }
  yield { ...step, messages: Buffer.concat(step.messages) };
}

const emptyStep = () => ({
  messages: [] as Buffer[],
  uses: new Set<string>(),
  closes: new Set<string>(),
  mayUseAll: false,
  unnamed: undefined as Buffer | undefined,
});

function noteStatements(step: ReturnType<typeof emptyStep>, kind: number, each: Buffer): void {
  // Describe and Close have the kind, which is a statement or a portal, and then the name.
  const named = each[5] === type('S') ? textAt(each, 6) : undefined;
  if (kind === type('D') && named !== undefined) step.uses.add(named);
  if (kind === type('C') && named !== undefined) step.closes.add(named);
  // Bind has the name of the portal before that of the statement.
  if (kind === type('B')) step.uses.add(textAt(each, each.indexOf(0, 5) + 1));
  if (kind === type('P')) {
    const name = textAt(each, 5);
    step.closes.delete(name);
    if (name === '') step.unnamed = each;
    // If the guest has a statement of that name, the engine has to report the duplicate.
    else step.uses.add(name);
  }
  // A simple query removes the statement without a name.
  if (kind === type('Q')) {
    step.closes.add('');
    step.unnamed = undefined;
  }
  if (kind === type('Q') || kind === type('P'))
    step.mayUseAll ||= usesStatements.test(each.toString('latin1'));
}
