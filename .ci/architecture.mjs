/**
 * Holds the source against its own plan: imports run down the list of folders and never up, files and functions stay
 * readable in one go, and the root stays small. Part of `npm run check`; docs/architecture.md says what each folder is for.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** From the top to the bottom. What is in the root of `src` may be imported by all, and imports none of these. */
const folders = [
  'cli',
  'server',
  'graphql',
  'pages',
  'rest',
  'mirror',
  'demo',
  'schema',
  'auth',
  'telemetry',
  'http',
  'database',
];
const most = { entries: 16, linesOfFile: 400, linesOfFunction: 60 };

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const source = join(root, 'src');
const problems = [];

/** The place of a file in the list: the root of `src` comes below all folders. */
function rankOf(file) {
  const [folder, ...rest] = file.split(posix.sep);
  return rest.length === 0 ? folders.length : folders.indexOf(folder);
}

const entries = readdirSync(source);
if (entries.length > most.entries)
  problems.push(`src has ${entries.length} entries; at most ${most.entries}`);

const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .map((name) => name.split(sep).join(posix.sep))
  .filter((name) => name.endsWith('.ts') && !name.startsWith('database/generated/'));

for (const file of files) {
  const rank = rankOf(file);
  if (rank === -1) problems.push(`src/${file}: its folder is not in the list of .ci/architecture.mjs`);
  const text = readFileSync(join(source, file), 'utf8');
  const lines = text.split('\n').length - 1;
  if (lines > most.linesOfFile) problems.push(`src/${file}: ${lines} lines; at most ${most.linesOfFile}`);
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  visit(tree);

  function visit(node) {
    const specifier = specifierOf(node);
    if (specifier?.startsWith('.')) {
      const target = posix.join(posix.dirname(file), specifier);
      if (rankOf(target) < rank) problems.push(`src/${file}: imports src/${target}, which stands above it`);
    }
    if (ts.isFunctionLike(node) && 'body' in node && node.body) {
      const [first, last] = [node.getStart(), node.getEnd()].map(
        (position) => tree.getLineAndCharacterOfPosition(position).line,
      );
      const length = last - first + 1;
      if (length > most.linesOfFunction)
        problems.push(
          `src/${file}:${first + 1}: a function of ${length} lines; at most ${most.linesOfFunction}`,
        );
    }
    ts.forEachChild(node, visit);
  }
}

/** What a node imports, whether at the start, when needed, or as a type. */
function specifierOf(node) {
  if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier)
    return node.moduleSpecifier.text;
  const isDynamic = ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword;
  const [argument] = isDynamic ? node.arguments : [];
  return argument && ts.isStringLiteralLike(argument) ? argument.text : undefined;
}

for (const problem of problems) process.stdout.write(`${problem}\n`);
process.stdout.write(
  `${relative(process.cwd(), source) || 'src'}: ${files.length} files, ${problems.length} problems.\n`,
);
process.exitCode = problems.length === 0 ? 0 : 1;
