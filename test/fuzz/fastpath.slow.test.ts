/**
 * Compares the gateway with graphql-js. graphql-js executes random documents with random variables over the same schema,
 * without the gateway's optimizations of how rows are read. The gateway gets the same request three times by POST, when it is executed
 * by graphql-js, comes from the cache, and is executed by compiled code, and twice by GET. All responses must be the same, errors included.
 * No statement may have more joins than PostgreSQL plans in a few milliseconds, whatever the filters.
 *
 * In the suite this takes three seconds; `npm run fuzz -- --minutes 10` runs it longer, and `SEED=…` repeats a run.
 */

import fc from 'fast-check';
import {
  type ASTNode,
  type DirectiveNode,
  type DocumentNode,
  type ExecutionResult,
  execute,
  GraphQLError,
  GraphQLObjectType,
  GraphQLSchema,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  parse,
  validate,
  visit,
} from 'graphql';
import { afterAll, expect, inject, it } from 'vitest';
import type { Viewer } from '../../src/auth/viewer.ts';
import { statementSpans } from '../../src/channels.ts';
import { clientErrorOf, hiddenIn } from '../../src/errors.ts';
import { schemaOf } from '../../src/extensionPoints.ts';
import { extensions } from '../../src/extensions/extensions.ts';
import { noOperation } from '../../src/graphql/documents.ts';
import { limits } from '../../src/schema/filter.ts';
import { executions, nameArguments } from '../../src/schema/operation.ts';
import { schema as ownSchema } from '../../src/schema/schema.ts';
import { type Account, createAccount, importTemplate } from '../support/accounts.ts';
import { openTestGateway } from '../support/gateway.ts';
import { readConfig } from '../support/settings.ts';
import { drawDocument } from './documents.ts';
import { plainContext } from './plainContext.ts';
import { type DrawnDocument, type DrawnRequest, namesOf } from './requests.ts';

const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const minutes = Number(process.env.FUZZ_MINUTES ?? 0);
const milliseconds = minutes > 0 ? minutes * 60_000 : 3_000;
const minDocuments = 100;

/** With every third seed the gateway is a subgraph, and the documents query entities as well. */
const FEDERATION = seed % 3 === 0 ? 'on' : 'off';
const schema = (await schemaOf(extensions, readConfig({ FEDERATION }))) ?? ownSchema;

/** The schema without the mutations of tokens, which these viewers may not use: test/server/scopes has them. */
function schemaToDraw(): GraphQLSchema {
  const { mutation, types, ...others } = schema.toConfig();
  const { fields: { activateTemplate } = {}, ...named } = mutation?.toConfig() ?? { name: 'Mutation' };
  const kept = new GraphQLObjectType({ ...named, fields: activateTemplate ? { activateTemplate } : {} });
  return new GraphQLSchema({ ...others, mutation: kept, types: types.filter((type) => type !== mutation) });
}

/** High limits: the random documents are small anyway, and other tests exceed the limits. */
const settings = {
  FEDERATION,
  MAX_DEPTH: '1000',
  MAX_COMPLEXITY: '1000000000',
  MAX_TOKENS: '100000',
};

interface AccountWithViewer extends Account {
  readonly viewer: Viewer;
}

const gateway = await openTestGateway(undefined, { settings });
const { client } = gateway.database;
const create = async (name: string): Promise<AccountWithViewer> => {
  const account = await createAccount(client, name);
  const token = await client.apiToken.findFirstOrThrow({ where: { userId: account.userId } });
  return { ...account, viewer: { id: account.userId, tokenId: token.id, scope: 'activate' as const } };
};
/** Most requests are alice's. Those of bob between them must not affect her responses. */
const alice = await create('alice');
const bob = await create('bob');
await importTemplate(client, alice, bob.dttTemplates[0]);
await client.user.update({
  where: { id: alice.userId },
  data: { activeTemplateId: alice.dttTemplates[1] },
});
const accounts = [alice, bob].map(({ viewer: _, ...account }): Account => account);
const names = await namesOf(gateway.url, accounts);
afterAll(() => gateway.close());

/** The most joins that a statement had. */
let mostJoins = 0;
const noteJoins = (span: unknown) => {
  // What is published for a statement.
  const { text } = span as { readonly text: string };
  mostJoins = Math.max(mostJoins, text.split('EXISTS').length - 1);
};
statementSpans.start.subscribe(noteJoins);
afterAll(() => statementSpans.start.unsubscribe(noteJoins));

const counts = {
  documents: 0,
  invalid: 0,
  executions: 0,
  failed: 0,
  compiled: 0,
  interpreted: 0,
  rejected: 0,
  cached: 0,
};

/** A response as text to compare: the order of its fields matters, the order of its errors does not. */
function normalized({ data, errors }: ExecutionResult): string {
  const texts = (errors ?? []).map((error) => {
    const length = error.path ? lengthToNull(data, error.path) : undefined;
    if (length === undefined) return JSON.stringify(error);
    // What is null because of an error within it may have the errors of several fields there (GraphQL, section 6.4.4). How many
    // depends on what was read first.
    return JSON.stringify({ within: error.path?.slice(0, length), code: error.extensions.code });
  });
  return JSON.stringify({ data, errors: [...new Set(texts)].sort() }, undefined, 1);
}

/** How long the path is to what is null above its end; undefined if nothing is. */
function lengthToNull(data: unknown, path: readonly (string | number)[]): number | undefined {
  let place = data;
  for (const [length, step] of path.entries()) {
    if (place == null) return length;
    // The data has the shape of the path, down to what is null.
    place = (place as Record<string | number, unknown>)[step];
  }
  return undefined;
}

/** The result of graphql-js, with errors as the gateway shows them to clients. */
async function expected(
  text: string,
  { operationName, variables }: DrawnRequest,
  { viewer } = alice,
): Promise<string> {
  const parsed = parse(text);
  const operation = getOperationAST(parsed, operationName);
  if (!operation) {
    const extensions = { code: 'BAD_USER_INPUT' };
    return normalized({ errors: [new GraphQLError(noOperation(parsed, operationName), { extensions })] });
  }
  const contextValue = plainContext(gateway.database, viewer);
  const document = withoutConditions(parsed, operation, variables);
  const { data, errors } = await execute({
    schema,
    document,
    contextValue,
    operationName,
    variableValues: variables,
  });
  nameArguments(parsed, errors);
  const hidden: unknown[] = [];
  const clientErrors = errors?.map((error) => {
    const shown = clientErrorOf(error);
    const cause = hiddenIn(shown);
    if (cause !== undefined) hidden.push(cause);
    const { http: _, ...extensions } = shown.extensions;
    return { ...shown.toJSON(), extensions };
  });
  if (hidden.length > 0) throw hidden[0];
  // The gateway sends JSON, which leaves out values that are undefined.
  return normalized(JSON.parse(JSON.stringify({ data, errors: clientErrors })));
}

/**
 * The document without the selections that `@skip` and `@include` leave out, where their values are valid. Those selections are
 * not part of the operation, and resolvers must not see them.
 */
function withoutConditions(
  document: DocumentNode,
  { variableDefinitions = [] }: OperationDefinitionNode,
  variables: DrawnRequest['variables'] = {},
): DocumentNode {
  const values = new Map<string, unknown>();
  for (const { variable, defaultValue } of variableDefinitions) {
    const name = variable.name.value;
    const fallback = defaultValue?.kind === Kind.BOOLEAN ? defaultValue.value : undefined;
    values.set(name, Object.hasOwn(variables, name) ? variables[name] : fallback);
  }
  /** Whether the directive includes the node; undefined where its value is not a valid boolean. */
  const includes = ({ name, arguments: [given] = [] }: DirectiveNode): boolean | undefined => {
    const value = given?.value;
    const isTrue =
      value?.kind === Kind.BOOLEAN
        ? value.value
        : value?.kind === Kind.VARIABLE
          ? values.get(value.name.value)
          : undefined;
    return typeof isTrue === 'boolean' ? isTrue === (name.value === 'include') : undefined;
  };
  return visit(document, {
    enter(node: ASTNode) {
      if (!('directives' in node) || !node.directives?.length) return undefined;
      const included = node.directives.map(includes);
      if (included.includes(undefined)) return undefined;
      return included.includes(false) ? null : { ...node, directives: [] };
    },
  });
}

/** Sends a request to the gateway, and counts how it was executed there. */
async function response(target: string, options: RequestInit, { token } = alice): Promise<string> {
  const before = { ...executions, hits: gateway.responseCache.counters.hits };
  const response = await fetch(`${gateway.url}${target}`, {
    ...options,
    headers: { Authorization: `Bearer ${token}`, ...options.headers },
  });
  const result: ExecutionResult = await response.json();
  counts.executions++;
  if (result.errors) counts.failed++;
  if (gateway.responseCache.counters.hits > before.hits) counts.cached++;
  else if (executions.compiled > before.compiled) counts.compiled++;
  else if (executions.interpreted > before.interpreted) counts.interpreted++;
  else counts.rejected++;
  return normalized(result);
}

async function compare({ text, requests }: DrawnDocument): Promise<void> {
  counts.documents++;
  if (validate(schema, parse(text)).length > 0) {
    counts.invalid++;
    return;
  }
  const writes = /\bmutation\b/.test(text);
  for (const [index, request] of requests.entries()) {
    const before = async () => {
      if (writes) await gateway.database.pool.query(reset, [alice.userId, alice.dttTemplates[1]]);
    };
    await before();
    const right = await expected(text, request);
    const first = JSON.stringify({ query: text, ...request });
    const headers = { 'Content-Type': 'application/json' };
    const send = (options: RequestInit, viewer?: AccountWithViewer) => response('/graphql', options, viewer);
    // The cache does not know the third request, which has a variable that nothing reads.
    const again = JSON.stringify({
      query: text,
      ...request,
      variables: { ...request.variables, 'not a name': 1 },
    });
    for (const [how, body] of [
      ['by POST', first],
      ['by the second POST', first],
      ['compiled', again],
    ] as const) {
      await before();
      expectSame(how, await send({ method: 'POST', headers, body }), right, text, request);
    }
    if (!writes) {
      const ofBob = await send({ method: 'POST', headers, body: first }, bob);
      expectSame('by POST of another viewer', ofBob, await expected(text, request, bob), text, request);
    }
    const target = targetOf(text, request);
    if (writes || index > 0 || target.length > 8_000) continue;
    for (const how of ['by GET', 'by the second GET'])
      expectSame(how, await response(target, {}), right, text, request);
  }
}

/** Restores the state before a mutation, so that it returns the same each time. */
const reset = `UPDATE "User" SET "activeTemplateId" = $2, "scheduleType" = 'auto' WHERE id = $1`;

function targetOf(text: string, { operationName, variables }: DrawnRequest): string {
  const parameters = new URLSearchParams({
    query: text,
    ...(operationName !== undefined && { operationName }),
    ...(variables && { variables: JSON.stringify(variables) }),
  });
  return `/graphql?${parameters}`;
}

function expectSame(how: string, actual: string, right: string, text: string, request: DrawnRequest): void {
  if (actual === right) return;
  const details = `${request.operationName ?? 'no name'}, variables ${JSON.stringify(request.variables)}`;
  throw new Error(`the response ${how} differs:\n${text}\n${details}\nis:\n${actual}\nshould be:\n${right}`);
}

it(`responds to random queries as graphql-js does, on every path of execution (SEED=${seed})`, {
  timeout: milliseconds + 120_000,
}, async () => {
  const began = performance.now();
  const tapes = fc.uint8Array({ maxLength: 500, size: 'max' });
  const drawn = schemaToDraw();
  const document = tapes.map((numbers) => drawDocument(numbers, names, drawn));
  for (let next = seed; performance.now() < began + milliseconds || counts.documents < minDocuments; next++) {
    // In milliseconds: how long fast-check shrinks a failing case.
    const options = { numRuns: 20, interruptAfterTimeLimit: 15_000, seed: next };
    await fc.assert(fc.asyncProperty(document, compare), options);
  }
  const shares = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
  process.stdout.write(
    `fast path on ${inject('engine').kind}: ${shares.join(', ')}, at most ${mostJoins} joins\n`,
  );
  expect(gateway.log).toEqual([]);
  // Besides those of its filter, a statement joins the library of the templates that it reads, and the sessions of segments.
  expect(mostJoins).toBeLessThanOrEqual(limits.joins + 2);
  // The comparison is worth something only if most documents are valid and every path is used.
  expect(counts.invalid / counts.documents).toBeLessThan(0.1);
  expect(counts.compiled / counts.executions).toBeGreaterThan(0.05);
  expect(counts.interpreted / counts.executions).toBeGreaterThan(0.02);
  expect(counts.cached / counts.executions).toBeGreaterThan(0.1);
});
