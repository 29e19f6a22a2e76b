/** The reference of the schema: a page with every query and every type, and an example for each query. */

import * as graphql from 'graphql';
import { escapeHtml } from '../src/pages/template.ts';
import { writeGlobalId } from '../src/schema/globalId.ts';
import { codeBlock, codeChoice } from './code.ts';
import { type Entry, fields, prose, referencePage, type Section, tokenInput } from './page.ts';
import { samplesOf } from './samples.ts';

/** @param sdl the schema as text. @returns the page as HTML. */
export function schemaReference(sdl: string): string {
  const schema = graphql.buildSchema(sdl);
  const request = { method: 'POST', target: '/graphql', body: { query: '{ viewer { username } }' } };
  return referencePage({
    title: 'GraphQL schema',
    description: 'Every query and every type of the GraphQL schema, with examples.',
    introduction: `${prose(schema.description)}<p><a href="schema.graphql">Download the schema (SDL)</a>. What stays as it is, and how changes are announced, is in <a href="guides/stability">Stability</a>.</p>`,
    aside: `${tokenInput}\n${codeChoice('', samplesOf(request))}`,
    sections: sectionsOf(schema),
  });
}

export function sectionsOf(schema: graphql.GraphQLSchema): Section[] {
  const [query, mutation] = [schema.getQueryType(), schema.getMutationType()];
  const roots: unknown[] = [query, mutation, schema.getSubscriptionType()];
  const types = Object.values(schema.getTypeMap()).filter(
    (type) => !isBuiltIn(type) && !roots.includes(type),
  );
  const operations = (kind: string, root: typeof query) =>
    Object.values(root?.getFields() ?? {}).map((field) => describeOperation(kind, field));
  const entries = (isOfKind: (type: graphql.GraphQLNamedType) => boolean) =>
    types.filter(isOfKind).map((type) => describeType(schema, type));
  const isPage = ({ name }: Member) => /(Connection|Edge|PageInfo)$/.test(name);
  const records = entries((type) => graphql.isObjectType(type) && !isPage(type));
  const sections = [
    {
      title: 'Queries',
      says: 'Each can be followed: write `subscription` for `query`.',
      entries: operations('query', query),
    },
    { title: 'Mutations', says: 'All that can be written.', entries: operations('mutation', mutation) },
    { title: 'Types', says: 'What queries return.', entries: records },
    {
      title: 'Interfaces',
      says: 'Fields that several types have.',
      entries: entries(graphql.isInterfaceType),
    },
    { title: 'Pages of lists', says: 'What lists return.', entries: entries(isPage) },
    { title: 'Inputs', says: 'What arguments take.', entries: entries(graphql.isInputObjectType) },
    { title: 'Enums', says: 'Values to choose from.', entries: entries(graphql.isEnumType) },
    { title: 'Scalars', says: 'Beside those of GraphQL itself.', entries: entries(graphql.isScalarType) },
  ];
  return sections.filter((section) => section.entries.length > 0);
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

function describeOperation(kind: string, field: Field): Entry {
  const example = exampleOf(kind, field);
  // The gateway removes the link if it has no GraphiQL.
  const link = `<a href="graphql?query=${encodeURIComponent(example)}">Open in GraphiQL</a>`;
  const record = recordOf(field.type);
  const parts = [
    field.args.length > 0 ? `<h4>Arguments</h4>${fields(field.args.map(rowOf))}` : '',
    `<h4>Returns</h4><p>${linked(field.type)}</p>`,
    record
      ? `<details><summary>Fields of ${record.name}</summary>${fields(Object.values(record.getFields()).map(rowOf))}</details>`
      : '',
  ];
  const samples = codeBlock(`<span>Example</span>${link}`, { language: 'graphql', text: example });
  return { ...describe(`${kind}-${field.name}`, field, parts.join('\n')), samples };
}

/** The object of an operation, or, of one that returns pages, the object that these have. */
function recordOf(given: graphql.GraphQLOutputType): graphql.GraphQLObjectType | undefined {
  const type = graphql.getNamedType(given);
  if (!graphql.isObjectType(type)) return undefined;
  const nodes = type.getFields().nodes;
  return nodes ? recordOf(nodes.type) : type;
}

function describeType(schema: graphql.GraphQLSchema, type: graphql.GraphQLNamedType): Entry {
  const own = 'getFields' in type ? Object.values(type.getFields()) : [];
  const members = graphql.isEnumType(type) ? type.getValues() : own;
  const [relation, others] = graphql.isInterfaceType(type)
    ? ['Types', schema.getPossibleTypes(type)]
    : ['Interfaces', graphql.isObjectType(type) ? type.getInterfaces() : []];
  const related = others.length > 0 ? `<p>${relation}: ${others.map(linked).join(', ')}.</p>\n` : '';
  return describe(type.name, type, related + fields(members.map(rowOf)));
}

const describe = (id: string, member: Member, content: string): Entry => ({
  id,
  link: member.name,
  title: `<code>${member.name}</code>`,
  text: `${prose(member.description)}${warningOf(member)}\n${content}`,
});

const warningOf = ({ deprecationReason }: Member) =>
  deprecationReason ? `<p><b>Deprecated.</b> ${escapeHtml(deprecationReason)}</p>` : '';

/** The name and the description of a member. The latter has the arguments, if there are some. */
function rowOf(member: Member): [name: string, says: string] {
  const { name, description, type, args = [], defaultValue } = member;
  const given = graphql.isInputType(type) && graphql.astFromValue(defaultValue, type);
  const preset = given ? ` = ${escapeHtml(graphql.print(given))}` : '';
  return [
    `<code>${name}</code> ${type ? `<i>${linked(type)}${preset}</i>` : ''}`,
    `${escapeHtml(description ?? '')}${warningOf(member)}${fields(args.map(rowOf))}`,
  ];
}

/** The type, with a link to its entry. */
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
