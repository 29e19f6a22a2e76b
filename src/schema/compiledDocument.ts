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

type Values = Readonly<Record<string, unknown>>;

export interface CompiledDocument {
  readonly document: DocumentNode;
  /**
   * The values of all its variables, from those of the operation. Undefined if an argument has an invalid value, for which
   * graphql-js makes the error.
   */
  values(variables: Values): Values | undefined;
}

/** The value of an argument that is written in the document, with or without variables in it. */
interface ArgumentValue {
  readonly node: ValueNode;
  readonly type: GraphQLInputType;
}

/** The type of values that graphql-js has coerced already. Its name is random, so no client can use it. */
const readAlready = new GraphQLScalarType({ name: 'ReadAlready', parseValue: (value) => value });
const nameOfType = randomUUID();
const typeNode: NamedTypeNode = {
  kind: Kind.NAMED_TYPE,
  name: { kind: Kind.NAME, value: nameOfType },
};

/** Finds that type by its name in compiled documents. */
export const findReadType = (name: string) => (name === nameOfType ? readAlready : undefined);

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
  const prefix = unusedPrefix(document);
  const typeInfo = new TypeInfo(schema);
  const bare: DocumentNode = visit(
    document,
    visitWithTypeInfo(typeInfo, {
      enter(node: ASTNode) {
        if (node.kind === Kind.ARGUMENT) {
          const type = typeInfo.getInputType();
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
  return { document: withDefinitions(bare, definitions), values: readerOf(argumentValues) };
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

/** Returns a function for the values of these variables. Only values that contain a client's variables are read each time. */
function readerOf(argumentValues: ReadonlyMap<string, ArgumentValue>): CompiledDocument['values'] {
  const fixed: Record<string, unknown> = {};
  const others: (readonly [string, ArgumentValue])[] = [];
  for (const [name, { node, type }] of argumentValues) {
    if (hasVariable(node)) others.push([name, { node, type }]);
    else fixed[name] = valueFromAST(node, type);
  }
  const isWrong = Object.values(fixed).includes(undefined);
  return (variables) => {
    if (isWrong) return undefined;
    const values: Record<string, unknown> = { ...variables, ...fixed };
    for (const [name, { node, type }] of others) {
      const value = valueFromAST(node, type, variables);
      if (value === undefined) return undefined;
      values[name] = value;
    }
    return values;
  };
}

/** Adds variables to those of the operation. The operation's own need no defaults, since their values are passed with defaults applied. */
function withDefinitions(
  document: DocumentNode,
  definitions: readonly VariableDefinitionNode[],
): DocumentNode {
  return {
    ...document,
    definitions: document.definitions.map((node) => {
      if (node.kind !== Kind.OPERATION_DEFINITION) return node;
      const own = (node.variableDefinitions ?? []).map(({ defaultValue: _, ...definition }) => ({
        ...definition,
        type: typeNode,
      }));
      return { ...node, variableDefinitions: [...own, ...definitions] };
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
