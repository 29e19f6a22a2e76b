/** Cuts the messages of a guest into steps, and says which prepared statements each of them uses. */

import { messagesIn, textAt, type } from './protocol.ts';

/** Messages up to one behind which the engine listens again, whatever became of those before. */
export interface Step {
  readonly messages: Buffer;
  /** The names of the prepared statements that they use. */
  readonly uses: ReadonlySet<string>;
  /** Whether they may use any of them, which SQL can. */
  readonly mayUseAll: boolean;
  /** The names of those that they close. */
  readonly closes: ReadonlySet<string>;
  /** The last that prepares the statement without a name, which no catalog lists. */
  readonly unnamed: Buffer | undefined;
}

/** Whether SQL could use a statement that was prepared by a message. Too often costs little. */
const usesStatements = /\b(?:execute|deallocate|pg_prepared_statements?)\b/i;

/** The rows of a COPY have to be at hand when it runs, and belong to its step. */
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
  // Describe and Close are about a statement or a portal, and then name it.
  const named = each[5] === type('S') ? textAt(each, 6) : undefined;
  if (kind === type('D') && named !== undefined) step.uses.add(named);
  if (kind === type('C') && named !== undefined) step.closes.add(named);
  // Bind names the portal first.
  if (kind === type('B')) step.uses.add(textAt(each, each.indexOf(0, 5) + 1));
  if (kind === type('P')) {
    const name = textAt(each, 5);
    step.closes.delete(name);
    if (name === '') step.unnamed = each;
    // Where there is one of that name, the engine is to say so.
    else step.uses.add(name);
  }
  // A simple query does away with the statement without a name.
  if (kind === type('Q')) {
    step.closes.add('');
    step.unnamed = undefined;
  }
  if (kind === type('Q') || kind === type('P'))
    step.mayUseAll ||= usesStatements.test(each.toString('latin1'));
}
