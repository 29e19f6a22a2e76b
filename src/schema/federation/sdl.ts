/** The text of the subgraph, of which a supergraph is composed. */

import {
  type ConstDirectiveNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  Kind,
  lexicographicSortSchema,
  parse,
  print,
  printSchema,
  visit,
} from 'graphql';

/** The oldest version of the specification that has all that is used here: every gateway and composition knows it. */
const link = directivesOf(
  '@link(url: "https://specs.apollo.dev/federation/v2.0", import: ["@key", "@shareable"])',
);
const keys = directivesOf('@key(fields: "id") @key(fields: "databaseId")');
const shareable = directivesOf('@shareable');

/**
 * Prints the schema with what federation wants to know of it: the keys of entities; and that all other objects are values,
 * which other subgraphs may have as well, such as the `PageInfo` of Relay.
 */
export function printSubgraph(schema: GraphQLSchema, entities: readonly GraphQLObjectType[]): string {
  const isEntity = new Set(entities.map(({ name }) => name));
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  const isRoot = new Set(roots.map((root) => root?.name));
  const document = parse(printSchema(lexicographicSortSchema(schema)));
  const marked = visit(document, {
    // Composition does not know `@oneOf` yet. The subgraph itself still asks for exactly one of the fields.
    InputObjectTypeDefinition: (node) => ({ ...node, directives: [] }),
    SchemaDefinition: (node) => ({ ...node, directives: link }),
    ObjectTypeDefinition(node) {
      const name = node.name.value;
      if (isRoot.has(name)) return false;
      return { ...node, directives: isEntity.has(name) ? keys : shareable };
    },
  });
  return print(marked);
}

/** Directives as nodes of a document, for where a schema has them. */
function directivesOf(text: string): readonly ConstDirectiveNode[] {
  const [definition] = parse(`scalar Directives ${text}`).definitions;
  return (definition?.kind === Kind.SCALAR_TYPE_DEFINITION && definition.directives) || [];
}
