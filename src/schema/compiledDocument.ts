/**
 * What the compiler is given of an operation: without conditions, and with every value in a variable. It writes literals
 * into the code that it makes, where the text of a client has no business, and reads the values of variables by rules of
 * its own, which never end for types that contain themselves, such as filters. So graphql-js reads them all.
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
import { isIncluded } from './conditions.ts';

type Values = Readonly<Record<string, unknown>>;

export interface CompiledDocument {
  readonly document: DocumentNode;
  /**
   * The values of all its variables, made of those of the operation's. Undefined where an argument cannot have its value,
   * an error that graphql-js has the words for.
   */
  values(variables: Values): Values | undefined;
}

/** A value of an argument that stands in the document, with variables in it or without. */
interface Written {
  readonly node: ValueNode;
  readonly type: GraphQLInputType;
}

/** The type of values that graphql-js has read already. No client knows its name, so none can ask for it. */
const readAlready = new GraphQLScalarType({ name: 'ReadAlready', parseValue: (value) => value });
const nameOfType = randomUUID();
const typeNode: NamedTypeNode = {
  kind: Kind.NAMED_TYPE,
  name: { kind: Kind.NAME, value: nameOfType },
};

/** That type, by the name that the document has for it. */
export const findReadType = (name: string) => (name === nameOfType ? readAlready : undefined);

/**
 * The document without its directives, and without what they leave out. Every node is a new one: graphql-jit writes
 * into them.
 * @param document a valid one, with one operation.
 * @param variables the values of those that decide conditions, at least.
 */
export function compiledDocument(
  schema: GraphQLSchema,
  document: DocumentNode,
  variables: Values,
): CompiledDocument {
  const written = new Map<string, Written>();
  const prefix = unusedPrefix(document);
  const typeInfo = new TypeInfo(schema);
  const bare: DocumentNode = visit(
    document,
    visitWithTypeInfo(typeInfo, {
      enter(node: ASTNode) {
        if (node.kind === Kind.ARGUMENT) {
          const type = typeInfo.getInputType();
          if (node.value.kind === Kind.VARIABLE || !type) return { ...node };
          const name = `${prefix}${written.size}`;
          written.set(name, { node: node.value, type });
          return { ...node, value: variableNode(name) };
        }
        if (!('directives' in node) || !node.directives) return { ...node };
        if (!isIncluded(node, variables)) return null;
        const { directives: _, ...others } = node;
        return others;
      },
    }),
  );
  const definitions = [...written.keys()].map(
    (name): VariableDefinitionNode => ({
      kind: Kind.VARIABLE_DEFINITION,
      variable: variableNode(name),
      type: typeNode,
    }),
  );
  return { document: withDefinitions(bare, definitions), values: readerOf(written) };
}

/** Whether a value of a document has a variable in it. */
export function hasVariable(value: ValueNode): boolean {
  let found = false;
  visit(value, {
    Variable() {
      found = true;
    },
  });
  return found;
}

/** What reads the values of these variables: only those that a client's variables are part of are read each time. */
function readerOf(written: ReadonlyMap<string, Written>): CompiledDocument['values'] {
  const fixed: Record<string, unknown> = {};
  const others: (readonly [string, Written])[] = [];
  for (const [name, { node, type }] of written) {
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

/** Gives the operation these variables beside its own, which have no defaults: they are given with these in place. */
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

/** What no variable of the document begins with. */
function unusedPrefix(document: DocumentNode): string {
  let prefix = 'written';
  visit(document, {
    Variable({ name }) {
      while (name.value.startsWith(prefix)) prefix += '_';
    },
  });
  return prefix;
}
