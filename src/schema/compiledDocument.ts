/**
 * Prepares a document for the compiler: without conditions, and with every argument in a variable. The compiler would write literals
 * into the code that it generates, where text of a client must not be, and its own coercion of variables does not terminate
 * for recursive types such as filters. So graphql-js coerces all values.
 */

import { randomUUID } from 'node:crypto';
import {
  type ASTNode,
  type DocumentNode,
  type GraphQLInputType,
  GraphQLScalarType,
  type GraphQLSchema,
  isNonNullType,
  Kind,
  type NamedTypeNode,
  TypeInfo,
  type ValueNode,
  type VariableDefinitionNode,
  valueFromAST,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { isIncluded } from './directives.ts';

/** The values of variables by their names. */
export type Values = Readonly<Record<string, unknown>>;

export interface CompiledDocument {
  readonly document: DocumentNode;
  /**
   * The values of all its variables, from the coerced ones of the operation. Undefined if an argument has an invalid value, for
   * which graphql-js makes the error.
   */
  values(variables: Values): Values | undefined;
}

/** The value of an argument that is written in the document, with or without variables in it. */
interface ArgumentValue {
  readonly node: ValueNode;
  readonly type: GraphQLInputType;
}

/** The type of values that are coerced already. Its name is random, so no client can use it. */
const coercedType = new GraphQLScalarType({ name: 'Coerced', parseValue: (value) => value });
const nameOfType = randomUUID();
const typeNode: NamedTypeNode = {
  kind: Kind.NAMED_TYPE,
  name: { kind: Kind.NAME, value: nameOfType },
};

/** Finds that type by its name in the documents made here. */
export const findCoercedType = (name: string) => (name === nameOfType ? coercedType : undefined);

/**
 * Copies a document without its directives and without the nodes that they exclude. Every node is a copy, since graphql-jit
 * modifies nodes.
 * @param document a valid document with one operation.
 * @param variables the values of at least those variables that conditions use.
 */
export function compiledDocument(
  schema: GraphQLSchema,
  document: DocumentNode,
  variables: Values,
): CompiledDocument {
  const argumentValues = new Map<string, ArgumentValue>();
  const neverNull = new Set<string>();
  const prefix = unusedPrefix(document);
  const typeInfo = new TypeInfo(schema);
  const bare: DocumentNode = visit(
    document,
    visitWithTypeInfo(typeInfo, {
      enter(node: ASTNode) {
        if (node.kind === Kind.ARGUMENT) {
          const type = typeInfo.getInputType();
          if (node.value.kind === Kind.VARIABLE && isNonNullType(type)) neverNull.add(node.value.name.value);
          if (node.value.kind === Kind.VARIABLE || !type) return { ...node };
          const name = `${prefix}${argumentValues.size}`;
          argumentValues.set(name, { node: node.value, type });
          return { ...node, value: variableNode(name) };
        }
        if (!('directives' in node) || !node.directives) return { ...node };
        if (!isIncluded(node, variables)) return null;
        const { directives: _, ...others } = node;
        return others;
      },
    }),
  );
  const definitions = [...argumentValues.keys()].map(
    (name): VariableDefinitionNode => ({
      kind: Kind.VARIABLE_DEFINITION,
      variable: variableNode(name),
      type: typeNode,
    }),
  );
  return {
    document: withCoercedVariables(bare, definitions),
    values: readerOf(argumentValues, [...neverNull]),
  };
}

/** Whether a value in a document contains a variable. */
export function hasVariable(value: ValueNode): boolean {
  let found = false;
  visit(value, {
    Variable() {
      found = true;
    },
  });
  return found;
}

/**
 * Returns a function for the values of these variables. Only values that contain a client's variables are read each time.
 * @param neverNull the client's variables that are arguments by themselves, where null is invalid.
 */
function readerOf(
  argumentValues: ReadonlyMap<string, ArgumentValue>,
  neverNull: readonly string[],
): CompiledDocument['values'] {
  const fixed: Record<string, unknown> = {};
  const others: (readonly [string, ArgumentValue])[] = [];
  for (const [name, { node, type }] of argumentValues) {
    if (hasVariable(node)) others.push([name, { node, type }]);
    else fixed[name] = valueFromAST(node, type);
  }
  const isWrong = Object.values(fixed).includes(undefined);
  return (variables) => {
    if (isWrong || neverNull.some((name) => variables[name] === null)) return undefined;
    const values: Record<string, unknown> = { ...variables, ...fixed };
    for (const [name, { node, type }] of others) {
      const value = valueFromAST(node, type, variables);
      if (value === undefined) return undefined;
      values[name] = value;
    }
    return values;
  };
}

/**
 * The document for values that are coerced already, with defaults where they were not sent: no executor coerces them once more.
 * @param others further variables of its operations.
 */
export function withCoercedVariables(
  document: DocumentNode,
  others: readonly VariableDefinitionNode[] = [],
): DocumentNode {
  return {
    ...document,
    definitions: document.definitions.map((node) => {
      if (node.kind !== Kind.OPERATION_DEFINITION) return node;
      const own = (node.variableDefinitions ?? []).map(({ defaultValue: _, ...definition }) => ({
        ...definition,
        type: typeNode,
      }));
      return { ...node, variableDefinitions: [...own, ...others] };
    }),
  };
}

const variableNode = (name: string) =>
  ({ kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: name } }) as const;

/** A prefix that no variable of the document has. */
function unusedPrefix(document: DocumentNode): string {
  let prefix = 'written';
  visit(document, {
    Variable({ name }) {
      while (name.value.startsWith(prefix)) prefix += '_';
    },
  });
  return prefix;
}
