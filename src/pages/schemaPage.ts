/** The reference of the schema: every query and every type, with an example for each query. */

import * as graphql from 'graphql';
import { writeGlobalId } from '../schema/globalId.ts';
import { schema as ownSchema } from '../schema/schema.ts';
import { hasGraphiql, headerFor, type PageSettings } from './links.ts';
import { type PageHandler, staticResponse } from './page.ts';
import { card, escapeHtml, prose, referencePage, section, table } from './template.ts';

export const createSchemaPage = (settings: PageSettings): PageHandler =>
  staticResponse(async () => {
    return referencePage({
      header: headerFor(settings, '/schema'),
      title: 'GraphQL schema',
      description: 'Every query and every type of the GraphQL schema, with examples.',
      introduction: `${prose(ownSchema.description)}<p><a href="schema.graphql">Download the schema (SDL)</a>. What stays as it is, and how changes are announced, is in <a href="guides/stability">Stability</a>.</p>`,
      content: sectionsOf(ownSchema, hasGraphiql(settings)).join('\n'),
    });
  });

/** @param canTry whether the examples have a link to GraphiQL. */
export function sectionsOf(schema: graphql.GraphQLSchema, canTry: boolean): string[] {
  const [query, mutation] = [schema.getQueryType(), schema.getMutationType()];
  const roots: unknown[] = [query, mutation, schema.getSubscriptionType()];
  const types = Object.values(schema.getTypeMap()).filter(
    (type) => !isBuiltIn(type) && !roots.includes(type),
  );
  const operations = (kind: string, root: typeof query) =>
    Object.values(root?.getFields() ?? {}).map((field) => describeOperation(kind, field, canTry));
  const cards = (isOfKind: (type: graphql.GraphQLNamedType) => boolean) =>
    types.filter(isOfKind).map((type) => describeType(schema, type));
  const isPage = ({ name }: Member) => /(Connection|Edge|PageInfo)$/.test(name);
  const records = cards((type) => graphql.isObjectType(type) && !isPage(type));
  return [
    section('Queries', 'Each can be followed: write `subscription` for `query`.', operations('query', query)),
    section('Mutations', 'All that can be written.', operations('mutation', mutation)),
    section('Types', 'What queries return.', records),
    section('Interfaces', 'Fields that several types have.', cards(graphql.isInterfaceType)),
    section('Pages of lists', 'What lists return.', cards(isPage)),
    section('Inputs', 'What arguments take.', cards(graphql.isInputObjectType)),
    section('Enums', 'Values to choose from.', cards(graphql.isEnumType)),
    section('Scalars', 'Beside those of GraphQL itself.', cards(graphql.isScalarType)),
  ];
}

const isBuiltIn = (type: graphql.GraphQLNamedType) =>
  graphql.isIntrospectionType(type) || graphql.isSpecifiedScalarType(type);

/** A field, an argument, a value of an enum, or a type. */
interface Member {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly deprecationReason?: string | null | undefined;
  readonly type?: graphql.GraphQLType;
  readonly args?: readonly Member[];
  readonly defaultValue?: unknown;
}

type Field = graphql.GraphQLField<unknown, unknown>;

function describeOperation(kind: string, field: Field, canTry: boolean): string {
  const example = exampleOf(kind, field);
  const link = `<p><a href="graphql?query=${encodeURIComponent(example)}">Open in GraphiQL</a></p>`;
  const parts = [
    `<p>Returns ${linked(field.type)}.</p>`,
    field.args.length > 0 ? `<h3>Arguments</h3>${table(field.args.map(rowOf))}` : '',
    `<h3>Example</h3>\n<pre tabindex="0">${escapeHtml(example)}</pre>${canTry ? link : ''}`,
  ];
  return describe(`${kind}-${field.name}`, field, parts.join('\n'));
}

function describeType(schema: graphql.GraphQLSchema, type: graphql.GraphQLNamedType): string {
  const fields = 'getFields' in type ? Object.values(type.getFields()) : [];
  const members = graphql.isEnumType(type) ? type.getValues() : fields;
  const [relation, others] = graphql.isInterfaceType(type)
    ? ['Types', schema.getPossibleTypes(type)]
    : ['Interfaces', graphql.isObjectType(type) ? type.getInterfaces() : []];
  const related = others.length > 0 ? `<p>${relation}: ${others.map(linked).join(', ')}.</p>\n` : '';
  return describe(type.name, type, related + table(members.map(rowOf)));
}

/** A card whose title has the first sentence of the description. */
function describe(id: string, member: Member, content: string): string {
  const [, first = '', rest = ''] = /^(.*?\.(?=\s|$)|.*)(.*)$/s.exec(member.description ?? '') ?? [];
  const title = `<code>${member.name}</code> ${escapeHtml(first)}`;
  return card(id, title, `<div>${rest && prose(rest.trim())}${warningOf(member)}\n${content}</div>`);
}

const warningOf = ({ deprecationReason }: Member) =>
  deprecationReason ? `<p><b>Deprecated.</b> ${escapeHtml(deprecationReason)}</p>` : '';

/** The cells of a member. Arguments have a table in the second one. */
function rowOf(member: Member): string[] {
  const { name, description, type, args = [], defaultValue } = member;
  const given = graphql.isInputType(type) && graphql.astFromValue(defaultValue, type);
  const preset = given ? ` = ${escapeHtml(graphql.print(given))}` : '';
  return [
    `<code>${name}</code> ${type ? linked(type) : ''}${preset}`,
    `${escapeHtml(description ?? '')}${warningOf(member)}${table(args.map(rowOf))}`,
  ];
}

/** The type, with a link to its card. */
function linked(type: graphql.GraphQLType): string {
  const named = graphql.getNamedType(type);
  if (isBuiltIn(named)) return String(type);
  return String(type).replace(named.name, (name) => `<a href="#${name}">${name}</a>`);
}

/** An operation with all arguments that the field requires, and some of the fields that it returns. */
function exampleOf(kind: string, { name, args, type }: Field): string {
  const given = args.flatMap((each) => {
    if (each.name === 'first') return 'first: 2';
    return graphql.isRequiredArgument(each) ? `${each.name}: ${literalOf(each.type)}` : [];
  });
  const title = name.replace(/^./, (initial) => initial.toUpperCase());
  return graphql.print(
    graphql.parse(`${kind} ${title} { ${name}${given.length > 0 ? `(${given})` : ''} ${selectionOf(type)} }`),
  );
}

function literalOf(type: graphql.GraphQLInputType): string {
  if (graphql.isNonNullType(type)) return literalOf(type.ofType);
  if (graphql.isListType(type)) return `[${literalOf(type.ofType)}]`;
  const [first] = graphql.isInputObjectType(type) ? Object.values(type.getFields()) : [];
  if (first) return `{ ${first.name}: ${literalOf(first.type)} }`;
  if (type.name === 'String') return '"…"';
  return type.name === 'ID' ? `"${writeGlobalId('DttTemplate', 1)}"` : '1';
}

/** Some plain fields. Where there are few: the records of a page, or the first field with fields of its own. */
function selectionOf(given: graphql.GraphQLOutputType): string {
  const type = graphql.getNamedType(given);
  if (graphql.isLeafType(type)) return '';
  const fields = Object.values(graphql.isUnionType(type) ? {} : type.getFields());
  const others = fields.filter((field) => !graphql.isLeafType(graphql.getNamedType(field.type)));
  const leaves = fields.filter((field) => !others.includes(field) && !/^(?!database)\w+Id$/.test(field.name));
  const names = leaves.slice(0, 5).map(({ name }) => name);
  const deeper = names.length < 2 && (others.find(({ name }) => name === 'nodes') ?? others[0]);
  const more = deeper ? `${deeper.name} ${selectionOf(deeper.type)}` : '';
  return `{ ${graphql.isObjectType(type) ? '' : '__typename'} ${names.join(' ')} ${more} }`;
}
