/** The REST routes: the operations of `operations.graphql`, prepared once against the schema. */

import { readFileSync } from 'node:fs';
import {
  type DocumentNode,
  type ExecutionResult,
  extendSchema,
  type FieldNode,
  getDirectiveValues,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
  print,
  type SelectionSetNode,
  separateOperations,
  validate,
  visit,
} from 'graphql';
import type { Scope } from '../auth/scopes.ts';
import { isRecord } from '../http/json.ts';
import { root } from '../root.ts';
import type { Context } from '../schema/context.ts';
import { fragmentsOf, prepare } from '../schema/operation.ts';
import { schema } from '../schema/schema.ts';

export interface Route {
  readonly method: 'GET' | 'POST';
  /** The path below `/api/v1`. `{id}` is a placeholder, and always the last segment. */
  readonly path: string;
  /** Method and path, for logs and metrics. */
  readonly label: string;
  /** The name of a function for it: its `operationId`, and that of a tool. */
  readonly name: string;
  /** The first path of the operation, for a further one. */
  readonly aliasOf: string | undefined;
  /** What it does, in a few words. */
  readonly summary: string;
  /** What the summary leaves out. */
  readonly description: string;
  readonly operation: OperationDefinitionNode;
  /** The operation with its fragments, and with the directives that only the REST API understands. */
  readonly document: DocumentNode;
  readonly isMutation: boolean;
  /** The scope that it needs of the token. */
  readonly scope: Scope;
  /** Whether it takes `limit` and `offset` and responds with `pagination`. */
  readonly isList: boolean;
  /** The error message if the data is null; undefined if null is valid data. */
  readonly missing: string | undefined;
  /** The values that the JSON body must include, and the error message for a body that does not. */
  readonly body: { readonly values: Readonly<Record<string, unknown>>; readonly message: string } | undefined;
  run(variables: Readonly<Record<string, unknown>>, context: Context): Promise<ExecutionResult>;
}

/** The arguments of `@http`. */
interface HttpArguments extends Pick<Route, 'method' | 'path' | 'missing'> {
  readonly alias?: string;
  readonly body?: Readonly<Record<string, unknown>>;
}

/** The arguments of `@doc`. */
type Texts = Pick<Route, 'summary' | 'description'>;

const read = (name: string) => parse(readFileSync(new URL(`src/rest/${name}`, root), 'utf8'));

/** Every route, in the order of the file. The process does not start if an operation is invalid. */
export const routes: readonly Route[] = loadRoutes(read('operations.graphql'));

/**
 * Prepares the operations of a document.
 * @throws for an operation that is invalid in the schema.
 */
export function loadRoutes(operations: DocumentNode): Route[] {
  const withDirectives = extendSchema(schema, read('directives.graphql'));
  const errors = validate(withDirectives, operations);
  if (errors.length > 0)
    throw new AggregateError(errors, `operations.graphql: ${errors.map(String).join('\n')}`);

  const [http, doc] = ['http', 'doc'].map((name) => withDirectives.getDirective(name));
  if (!http || !doc) throw new Error('directives.graphql does not declare @http and @doc');
  return Object.values(separateOperations(operations)).flatMap((document) => {
    const operation = getOperationAST(document);
    if (!operation) return [];
    const { run, scope } = prepareRoute(document);
    const variables = new Set(operation.variableDefinitions?.map(({ variable }) => variable.name.value));
    // Of a repeated directive, `getDirectiveValues` reads the first.
    const first = getDirectiveValues(http, operation)?.path as string | undefined;
    const { summary = '', description = '' }: Partial<Texts> = getDirectiveValues(doc, operation) ?? {};
    const directives = operation.directives?.filter(({ name }) => name.value === http.name) ?? [];
    return directives.map((node): Route => {
      // `directives.graphql` declares the types of the values.
      const { method, path, alias, missing, body } = getDirectiveValues(http, {
        directives: [node],
      }) as unknown as HttpArguments;
      return {
        method,
        path,
        label: `${method} ${path}`,
        name: alias ?? operation.name?.value ?? path,
        ...(path === first
          ? { summary, description, aliasOf: undefined }
          : { summary: `Alias of \`${first}\`.`, description: `${summary} ${description}`, aliasOf: first }),
        operation,
        document,
        missing,
        body: body && bodyOf(body),
        isMutation: operation.operation === OperationTypeNode.MUTATION,
        isList: variables.has('limit') && variables.has('offset'),
        scope,
        run,
      };
    });
  });
}

/** Prepares the operation. Everything that does not depend on the request is done here. */
function prepareRoute(document: DocumentNode): Pick<Route, 'run' | 'scope'> {
  const optional = optionalPaths(document);
  const [data] = getOperationAST(document)?.selectionSet.selections ?? [];
  const isPage = data?.kind === Kind.FIELD && has('page', data);
  const spread = data?.kind === Kind.FIELD ? spreadName(data) : undefined;
  const operation = prepare(
    visit(document, {
      Directive: ({ name }) =>
        ['http', 'doc', 'spread', 'optional', 'page'].includes(name.value) ? null : undefined,
    }),
  );
  if (!operation || operation.type === OperationTypeNode.SUBSCRIPTION)
    throw new Error(`operations.graphql has an operation that cannot be run:\n${print(document)}`);
  const run: Route['run'] = async (variables, context) => {
    const result = await operation.run(variables, context);
    const { data } = result;
    if (data) for (const path of optional) leaveOutNull(data, path);
    if (spread !== undefined && isRecord(data?.data)) {
      const { [spread]: inner, ...others } = data.data;
      data.data = isRecord(inner) ? { ...inner, ...others } : null;
    }
    // A page has at least one entry.
    if (data?.data && isPage) data.data = { data: [data.data].slice(Number(variables.offset)) };
    return result;
  };
  return { run, scope: operation.scope };
}

/** Whether a field has a directive of `directives.graphql`. */
export function has(directive: 'spread' | 'page' | 'optional', { directives = [] }: FieldNode): boolean {
  return directives.some(({ name }) => name.value === directive);
}

/** Where the response has the fields with `@optional`, such as `data`, `TrainerSegment`, `points`. */
function optionalPaths(document: DocumentNode): string[][] {
  const fragments = fragmentsOf(document);
  const below = (selection: SelectionSetNode | undefined, path: readonly string[]): string[][] =>
    (selection?.selections ?? []).flatMap((part) => {
      if (part.kind !== Kind.FIELD) {
        const fragment = part.kind === Kind.INLINE_FRAGMENT ? part : fragments.get(part.name.value);
        return below(fragment?.selectionSet, path);
      }
      const here = [...path, (part.alias ?? part.name).value];
      return has('optional', part) ? [here] : below(part.selectionSet, here);
    });
  return below(getOperationAST(document)?.selectionSet, []);
}

/** The response name of the field with `@spread`, which is directly below the data. */
function spreadName({ selectionSet }: FieldNode): string | undefined {
  const parts = selectionSet?.selections.filter((part) => part.kind === Kind.FIELD);
  const spread = parts?.find((part) => has('spread', part));
  return (spread?.alias ?? spread?.name)?.value;
}

/** Leaves the field at the path out of every object that has null there. */
function leaveOutNull(value: unknown, path: readonly string[]): void {
  if (Array.isArray(value)) {
    for (const item of value) leaveOutNull(item, path);
    return;
  }
  const [key, ...rest] = path;
  if (key === undefined || !isRecord(value)) return;
  if (rest.length > 0) leaveOutNull(value[key], rest);
  // JSON leaves out undefined properties. `delete` would make the object slower to write.
  else if (value[key] === null) value[key] = undefined;
}

function bodyOf(values: Readonly<Record<string, unknown>>): Route['body'] {
  const parts = Object.entries(values).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return { values, message: `Request body must include { ${parts.join(', ')} }` };
}
