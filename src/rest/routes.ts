/** The REST routes: the operations of `operations.graphql`, prepared once against the schema. */

import { readFileSync } from 'node:fs';
import {
  type DirectiveNode,
  type DocumentNode,
  type ExecutionResult,
  extendSchema,
  type FieldNode,
  type GraphQLSchema,
  getDirectiveValues,
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
import { root } from '../root.ts';
import { prepare } from '../schema/compile.ts';
import type { Context } from '../schema/context.ts';
import { fragmentsOf } from '../schema/fragments.ts';
import { schema } from '../schema/schema.ts';
import { type Deprecation, type DeprecationArguments, readDeprecation } from './deprecation.ts';

export interface Route {
  readonly method: 'GET' | 'POST';
  /** The path below `/api/v1`. `{id}` stands for an id, and is always the last segment. */
  readonly path: string;
  /** Method and path, for logs and metrics. */
  readonly label: string;
  /** The description of its field in the schema. */
  readonly description: string;
  readonly operation: OperationDefinitionNode;
  /** The operation with its fragments, and with the directives that only the REST API understands. */
  readonly document: DocumentNode;
  readonly isMutation: boolean;
  /** Whether it takes `limit` and `offset` and responds with `pagination`. */
  readonly isList: boolean;
  /** The error message if the data is null; undefined if null is valid data. */
  readonly missing: string | undefined;
  /** The values that the JSON body must include, and the error message for a body that does not. */
  readonly body: { readonly values: Readonly<Record<string, unknown>>; readonly message: string } | undefined;
  readonly deprecation: Deprecation | undefined;
  run(variables: Readonly<Record<string, unknown>>, context: Context): Promise<ExecutionResult>;
}

/** The arguments of `@http`, except `body`, which `bodyOf` reads from the document. */
type HttpArguments = Pick<Route, 'method' | 'path' | 'missing'> & DeprecationArguments;

const read = (name: string) => parse(readFileSync(new URL(`src/rest/${name}`, root), 'utf8'));

/** Every route, in the order of the file. The process does not start if an operation is invalid. */
export const routes: readonly Route[] = loadRoutes(read('operations.graphql'));

/**
 * Prepares the operations of a document.
 * @throws for an operation that is invalid in the schema, or whose deprecation is.
 */
export function loadRoutes(operations: DocumentNode): Route[] {
  const withDirectives = extendSchema(schema, read('directives.graphql'));
  const errors = validate(withDirectives, operations);
  if (errors.length > 0)
    throw new AggregateError(errors, `operations.graphql: ${errors.map(String).join('\n')}`);

  const http = directive(withDirectives, 'http');
  return Object.values(separateOperations(operations)).flatMap((document) => {
    const operation = document.definitions.find(
      (definition) => definition.kind === Kind.OPERATION_DEFINITION,
    );
    if (!operation) return [];
    const run = prepareRoute(document);
    const variables = new Set(operation.variableDefinitions?.map(({ variable }) => variable.name.value));
    return (operation.directives ?? []).map((node): Route => {
      // Each node by itself, since `getDirectiveValues` reads only the first of a repeated directive. The types of
      // the values are those that `directives.graphql` declares.
      const { method, path, missing, ...others } = getDirectiveValues(http, {
        directives: [node],
      }) as unknown as HttpArguments;
      return {
        method,
        path,
        label: `${method} ${path}`,
        description: descriptionOf(operation),
        operation,
        document,
        missing,
        body: bodyOf(node),
        deprecation: readDeprecation(others),
        isMutation: operation.operation === OperationTypeNode.MUTATION,
        isList: variables.has('limit') && variables.has('offset'),
        run,
      };
    });
  });
}

/** Prepares the operation. Everything that does not depend on the request is done here. */
function prepareRoute(document: DocumentNode): Route['run'] {
  const optional = pathsOf(document, isOptional);
  const spread = pathsOf(document, isSpread);
  const operation = prepare(
    visit(document, { Directive: (node) => (isRestDirective(node) ? null : undefined) }),
  );
  if (!operation || operation.type === OperationTypeNode.SUBSCRIPTION)
    throw new Error(`operations.graphql has an operation that cannot be run:\n${print(document)}`);
  return async (variables, context) => {
    const result = await operation.run(variables, context);
    if (result.data) {
      for (const path of optional) leaveOutNull(result.data, path);
      for (const path of spread) spreadAt(result.data, path);
    }
    return result;
  };
}

/** The name of a route's operation. */
export function nameOf({ operation, path }: Pick<Route, 'operation' | 'path'>): string {
  return operation.name?.value ?? path;
}

function descriptionOf({ operation, selectionSet }: OperationDefinitionNode): string {
  const [data] = selectionSet.selections;
  const fields = schema.getRootType(operation)?.getFields() ?? {};
  return (data?.kind === Kind.FIELD && fields[data.name.value]?.description) || '';
}

/** Whether a field has `@spread`: the fields of its object replace it in the response. */
export function isSpread(node: FieldNode): boolean {
  return hasDirective(node, 'spread');
}

/** Whether a field has `@optional`: it is left out of the response where it is null. */
export function isOptional(node: FieldNode): boolean {
  return hasDirective(node, 'optional');
}

function hasDirective({ directives }: FieldNode, directive: string): boolean {
  return directives?.some(({ name }) => name.value === directive) ?? false;
}

function isRestDirective({ name }: DirectiveNode): boolean {
  return ['http', 'spread', 'optional'].includes(name.value);
}

/** The response paths of the operation's fields that are marked, including those in fragments. */
function pathsOf(document: DocumentNode, isMarked: (node: FieldNode) => boolean): string[][] {
  const fragments = fragmentsOf(document);
  const below = ({ selections }: SelectionSetNode, path: readonly string[]): string[][] =>
    selections.flatMap((part) => {
      if (part.kind !== Kind.FIELD) {
        const fragment = part.kind === Kind.INLINE_FRAGMENT ? part : fragments.get(part.name.value);
        return fragment ? below(fragment.selectionSet, path) : [];
      }
      const here = [...path, (part.alias ?? part.name).value];
      return [
        ...(isMarked(part) ? [here] : []),
        ...(part.selectionSet ? below(part.selectionSet, here) : []),
      ];
    });
  return document.definitions.flatMap((definition) =>
    definition.kind === Kind.OPERATION_DEFINITION ? below(definition.selectionSet, []) : [],
  );
}

/** Leaves the field at the path out of every object that has null there. */
function leaveOutNull(value: unknown, path: readonly string[]): void {
  if (Array.isArray(value)) {
    for (const item of value) leaveOutNull(item, path);
    return;
  }
  const [key, ...rest] = path;
  if (key === undefined || typeof value !== 'object' || value === null) return;
  // The data of a response consists of plain objects.
  const object = value as Record<string, unknown>;
  if (rest.length > 0) leaveOutNull(object[key], rest);
  // JSON leaves out what is undefined. An object from which a property is deleted takes longer to write.
  else if (object[key] === null) object[key] = undefined;
}

/**
 * Replaces the object at the path by its fields, which take its place among its siblings. If it is null, its parent becomes null.
 */
function spreadAt(data: Record<string, unknown>, [key, ...rest]: string[]): Record<string, unknown> | null {
  if (key === undefined) return data;
  const value = data[key];
  // The data of a response consists of plain objects, and no field within a list has `@spread`.
  const object = typeof value === 'object' ? (value as Record<string, unknown> | null) : null;
  if (rest.length > 0) {
    if (object) data[key] = spreadAt(object, rest);
    return data;
  }
  if (object === null) return null;
  const entries = Object.entries(data);
  for (const [name] of entries) delete data[name];
  for (const [name, entry] of entries) Object.assign(data, name === key ? object : { [name]: entry });
  return data;
}

function bodyOf(node: DirectiveNode): Route['body'] {
  const value = node.arguments?.find(({ name }) => name.value === 'body')?.value;
  if (value?.kind !== Kind.OBJECT) return undefined;
  const values = value.fields.map(({ name, value: field }) => [
    name.value,
    field.kind === Kind.BOOLEAN || field.kind === Kind.STRING ? field.value : null,
  ]);
  // `print` would leave out the spaces that the documented message has inside the braces.
  const text = `{ ${value.fields.map(print).join(', ')} }`;
  return { values: Object.fromEntries(values), message: `Request body must include ${text}` };
}

function directive(withDirectives: GraphQLSchema, name: string) {
  const found = withDirectives.getDirective(name);
  if (!found) throw new Error(`directives.graphql does not declare @${name}`);
  return found;
}
