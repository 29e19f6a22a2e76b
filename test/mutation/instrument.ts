/** Copies the sources with every mutant in them, each behind a switch, and says which mutants there are. */

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Instrumenter } from '@stryker-mutator/instrumenter';
import { output } from './output.ts';
import { addSqlMutator } from './sql.ts';

/** A fault that can be switched on. */
export interface Mutant {
  /** Its number in the copies. It changes with the sources. */
  readonly id: string;
  readonly file: string;
  /** `line:column`, both counted from 1. */
  readonly place: string;
  readonly mutator: string;
  readonly original: string;
  readonly replacement: string;
}

/** What the rules below need of a node of Babel's tree. */
interface Node {
  readonly type: string;
  readonly key?: { readonly name?: string };
  readonly callee?: { readonly property?: { readonly name?: string } };
}

interface Path {
  readonly node: Node;
  readonly listKey?: string;
  readonly parent: Node;
}

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'];

/** The faults that nobody would miss. docs/decisions/mutation.md says why these. */
function reasonToLeaveOut({ node, listKey, parent }: Path): string | undefined {
  if (node.type === 'ObjectProperty' && node.key?.name === 'description') return 'a description';
  const isText = node.type === 'StringLiteral' || node.type === 'TemplateLiteral';
  if (isText && listKey === 'arguments' && levels.includes(parent.callee?.property?.name ?? ''))
    return 'the text of a log line';
  return undefined;
}

addSqlMutator();

const silent = () => {};
const logger = {
  ...{ isTraceEnabled: () => false, isDebugEnabled: () => false, isInfoEnabled: () => false },
  ...{ isWarnEnabled: () => false, isErrorEnabled: () => false, isFatalEnabled: () => false },
  ...{ trace: silent, debug: silent, info: silent, warn: silent, error: silent, fatal: silent },
};

/** The sources of the gateway, without those that are generated. */
export const sources = () =>
  execFileSync('git', ['ls-files', 'src/*.ts'], { encoding: 'utf8' }).trim().split('\n');

/** Writes the copies below `output`. */
export async function instrumentSources(): Promise<Mutant[]> {
  const files = sources().map((name) => ({ name, mutate: true, content: readFileSync(name, 'utf8') }));
  const { files: copies, mutants } = await new Instrumenter(logger).instrument(files, {
    plugins: null,
    excludedMutations: [],
    // The package hides the type of its paths, which are Babel's.
    ignorers: [{ shouldIgnore: (path) => reasonToLeaveOut(path as Path) }],
  });
  for (const { name, content } of copies) {
    mkdirSync(dirname(join(output, name)), { recursive: true });
    writeFileSync(join(output, name), content);
  }
  const lines = new Map(files.map(({ name, content }) => [name, content.split('\n')]));
  return mutants
    .filter(({ status }) => status !== 'Ignored')
    .map(({ id, fileName, location: { start, end }, mutatorName, replacement }) => {
      const taken = lines.get(fileName)?.slice(start.line, end.line + 1) ?? [];
      const last = taken.length - 1;
      const cut = taken.map((line, index) =>
        line.slice(index === 0 ? start.column : 0, index === last ? end.column : undefined),
      );
      return {
        id,
        file: fileName,
        place: `${start.line + 1}:${start.column + 1}`,
        mutator: mutatorName,
        original: cut.join('\n'),
        replacement,
      };
    });
}
