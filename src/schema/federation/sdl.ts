/** Prints the subgraph as text, from which a supergraph is composed. */

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

/** The oldest version of the specification that has everything used here, so that every gateway and composition supports it. */
const link = directivesOf(
  '@link(url: "https://specs.apollo.dev/federation/v2.0", import: ["@key", "@shareable"])',
);
const keys = directivesOf('@key(fields: "id") @key(fields: "databaseId")');
const shareable = directivesOf('@shareable');

/**
 * Prints the schema with the directives of federation: entities have keys, and all other object types are shareable, since other
 * subgraphs may have them as well, such as the `PageInfo` of Relay.
 */
export function printSubgraph(schema: GraphQLSchema, entities: readonly GraphQLObjectType[]): string {
  const isEntity = new Set(entities.map(({ name }) => name));
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  const isRoot = new Set(roots.map((root) => root?.name));
  const document = parse(printSchema(lexicographicSortSchema(schema)));
  const marked = visit(document, {
    // Composition does not support `@oneOf` yet. The subgraph itself still requires exactly one of the fields.
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

/** Parses directives. */
function directivesOf(text: string): readonly ConstDirectiveNode[] {
  const [definition] = parse(`scalar Directives ${text}`).definitions;
  return (definition?.kind === Kind.SCALAR_TYPE_DEFINITION && definition.directives) || [];
}
