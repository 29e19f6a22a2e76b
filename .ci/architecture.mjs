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
  'mcp',
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
  'config',
];
const most = { entries: 18, linesOfFile: 400, linesOfFunction: 60 };

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
    checkFunction(node, tree, `src/${file}`);
    ts.forEachChild(node, visit);
  }
}

/**
 * The console knows the schema, by the types that are generated from it, and nothing else of the gateway. Its views use
 * `api` and `parts`, and not each other.
 */
const consoleSource = join(root, 'console', 'src');
const shared = ['api', 'parts'];
for (const name of readdirSync(consoleSource, { recursive: true, encoding: 'utf8' })) {
  if (!/\.tsx?$/.test(name)) continue;
  const file = name.split(sep).join(posix.sep);
  const text = readFileSync(join(consoleSource, file), 'utf8');
  const lines = text.split('\n').length - 1;
  if (lines > most.linesOfFile)
    problems.push(`console/src/${file}: ${lines} lines; at most ${most.linesOfFile}`);
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  visit(tree);

  function visit(node) {
    const specifier = specifierOf(node);
    if (specifier?.startsWith('.') && !mayImport(file, posix.join(posix.dirname(file), specifier)))
      problems.push(`console/src/${file}: may not import ${specifier}`);
    checkFunction(node, tree, `console/src/${file}`);
    ts.forEachChild(node, visit);
  }
}

function mayImport(file, target) {
  const [from, to] = [file, target].map((path) => (path.includes(posix.sep) ? path.split(posix.sep)[0] : ''));
  if (to === '..') return target.startsWith('../generated/');
  // What is in the root imports views, and views what is in the root, which is about the page alone.
  return from === '' || to === '' || from === to || shared.includes(to);
}

function checkFunction(node, tree, file) {
  if (!ts.isFunctionLike(node) || !('body' in node) || !node.body) return;
  const [first, last] = [node.getStart(), node.getEnd()].map(
    (position) => tree.getLineAndCharacterOfPosition(position).line,
  );
  const length = last - first + 1;
  if (length > most.linesOfFunction)
    problems.push(`${file}:${first + 1}: a function of ${length} lines; at most ${most.linesOfFunction}`);
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
