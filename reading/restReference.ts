/** The reference of the REST interface: a page made from its OpenAPI document, to learn from and to try every route. */

import type {
  ComponentsObject,
  OpenAPIObject,
  OperationObject,
  ParameterObject,
  ReferenceObject,
  ResponseObject,
  SchemaObject,
} from 'openapi3-ts/oas31';
import { escapeHtml } from '../src/pages/template.ts';
import { codeBlock, codeChoice } from './code.ts';
import { type Entry, fields as fieldList, prose, referencePage, type Section, tokenInput } from './page.ts';
import { samplesOf } from './samples.ts';

/** @returns the page as HTML. */
export function restReference(document: OpenAPIObject): string {
  const operations = Object.entries(document.paths ?? {}).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const { components = {}, servers: [{ url: base = '' } = {}] = [] } = document;
  const common = commonMessages(operations.map(({ operation }) => operation));
  const sections = (document.tags ?? []).map(({ name, description = '' }): Section => {
    const own = operations.filter(({ operation }) => operation.tags.includes(name));
    const entries = own.map((each) => describeRoute({ ...each, base, components, common }));
    return { title: name, says: description, entries };
  });
  return referencePage({
    title: 'REST reference',
    description: 'Every route of the REST interface, to learn from and to try.',
    introduction: `${prose(document.info.description)}
<p>Send shows the response. Follow shows it again after each change.</p>
<p><a href="openapi.json">The OpenAPI document</a> has the same, for code generators.</p>`,
    aside: `${tokenInput}
<noscript><p>To send requests from here, JavaScript is needed.</p></noscript>`,
    sections,
  });
}

interface DescribedRoute {
  /** Where the routes are, such as `/api/v1`. */
  readonly base: string;
  readonly path: string;
  readonly method: string;
  readonly operation: OperationObject;
  /** What several routes have, by name. */
  readonly components: ComponentsObject;
  /** The messages that every route has. */
  readonly common: ReadonlySet<string>;
}

const nameIn = ({ $ref }: ReferenceObject) => $ref.slice($ref.lastIndexOf('/') + 1);
const isReference = (value: object): value is ReferenceObject => '$ref' in value;
/** What is meant by a value, which may be a reference to one of these. */
const found = <Value extends object>(
  value: Value | ReferenceObject,
  among: Readonly<Record<string, Value | ReferenceObject>> = {},
): Value | undefined => {
  const target = isReference(value) ? among[nameIn(value)] : value;
  return target && !isReference(target) ? target : undefined;
};

function describeRoute({ base, path, method: name, operation, components, common }: DescribedRoute): Entry {
  const { operationId = '', summary = '', description, requestBody, responses = {} } = operation;
  const method = name.toUpperCase();
  const parameters = (operation.parameters ?? []).flatMap((each) => found(each, components.parameters) ?? []);
  const sent = requestBody && !isReference(requestBody) ? requestBody : undefined;
  const body = sent?.content['application/json']?.example;
  const isRare = ({ name }: ParameterObject) => !['id', 'limit', 'offset'].includes(name);
  const rare = parameters.filter(isRare);
  const inputs = parameters.filter((each) => !isRare(each)).map(inputFor);
  if (body) inputs.push(bodyField(body, sent?.description));
  const id = parameters.find(({ in: place }) => place === 'path')?.example ?? 1;
  const isList = parameters.some((each) => each.name === 'limit');
  const target = `${base}${path.replace('{id}', String(id))}${isList ? `?limit=${exampleLimit}` : ''}`;
  const content = responses[200]?.content?.['application/json'];
  const data = content?.schema?.properties?.data;
  const text = [
    `<p>${escapeHtml(summary)}</p>${prose(description)}`,
    inputs.length > 0 ? `<h4>Parameters</h4>${inputs.join('\n')}` : '',
    folded(
      `Rarely needed: ${rare.map((each) => `<code>${each.name}</code>`).join(', ')}`,
      rare.map(inputFor).join('\n'),
    ),
    `<h4>Data</h4>${describeData(data, components.schemas, isList)}`,
    `<h4>Other statuses</h4>${describeErrors(responses, components, common)}`,
  ];
  const samples = [
    codeChoice(body ? sendButton : followButton + sendButton, samplesOf({ method, target, body })),
    '<output></output>',
    codeBlock('<span>Response</span>', {
      language: 'json',
      text: JSON.stringify(content?.example, null, 2),
    }),
  ];
  return {
    id: operationId,
    link: `<b>${method}</b> ${path}`,
    title: `<b>${method}</b> <code>${path}</code>`,
    text: text.join('\n'),
    samples: samples.join('\n'),
    form: ` data-method="${method}" data-base="${base.slice(1)}" data-path="${path}"`,
  };
}

const sendButton = '<button type="submit" class="main">Send</button>';
/** For each route that reads: it shows the response, and each change, until it is pressed again. */
const followButton = '<button type="button" class="follow">Follow</button>';

const folded = (title: string, content: string) =>
  content && `<details><summary>${title}</summary>\n${content}\n</details>`;

/** The limit of each example of a list. It is filled in, so that Send asks for what the samples ask for. */
const exampleLimit = '1';

function inputFor(parameter: ParameterObject): string {
  const { name, in: place, required = false, description = '', example = 1, schema = {} } = parameter;
  const value = place === 'path' ? String(example) : name === 'limit' ? exampleLimit : '';
  const type = isReference(schema) ? '' : limitsOf(schema);
  return `<label class="parameter"><span><code>${name}</code> <i>${type}</i><br>${escapeHtml(description)}</span>
<input name="${name}" data-in="${place}" value="${value}"${required ? ' required' : ''} autocomplete="off"></label>`;
}

/** The only body that a route takes. */
const bodyField = (
  body: unknown,
  description = '',
) => `<label class="parameter"><span><code>Body</code> <i>JSON</i><br>${escapeHtml(description)}</span>
<textarea name="body" data-in="body" rows="1" spellcheck="false">${JSON.stringify(body)}</textarea></label>`;

function limitsOf({ type, minimum, maximum, default: preset }: SchemaObject): string {
  const range = maximum === undefined ? `at least ${minimum}` : `${minimum} to ${maximum}`;
  const parts = [type, minimum !== undefined && range, preset !== undefined && `${preset} by default`];
  return parts.filter(Boolean).join(', ');
}

type Schemas = Readonly<Record<string, SchemaObject | ReferenceObject>>;
type Schema = SchemaObject | ReferenceObject;

/** The fields of a route's `data`. Those of the records of a list are seen at once. */
function describeData(data: Schema | undefined, schemas: Schemas = {}, isList = false): string {
  if (!data) return '';
  const record = recordIn(data, schemas);
  const says = isReference(data) || data.anyOf ? `<p>${typeOf(data)}</p>` : '';
  return says + (record ? fieldsOf(record, schemas, isList) : typeOf(data));
}

/** The object that a value is, or a list of; undefined for any other value. */
function recordIn(value: Schema, schemas: Schemas): SchemaObject | undefined {
  const target = found(value, schemas);
  if (target?.properties) return target;
  const inner = target?.items ? [target.items] : (target?.anyOf ?? target?.oneOf ?? []);
  return inner.map((each) => recordIn(each, schemas)).find(Boolean);
}

function fieldsOf(
  { properties = {}, required = [] }: SchemaObject,
  schemas: Schemas,
  isOpen = false,
): string {
  return fieldList(
    Object.entries(properties).map(([name, value]): [string, string] => {
      const record = recordIn(value, schemas);
      const { description = '' } = isReference(value) ? (found(value, schemas) ?? {}) : value;
      const below = record && fieldsOf(record, schemas);
      const details =
        below && `<details${isOpen ? ' open' : ''}><summary>Fields of ${name}</summary>${below}</details>`;
      const type = typeOf(value) + (required.includes(name) ? '' : ', may be absent');
      return [`<code>${name}</code> <i>${type}</i>`, `${escapeHtml(description)}${details ?? ''}`];
    }),
  );
}

function typeOf(value: Schema): string {
  if (isReference(value)) return nameIn(value);
  const alternatives = value.anyOf ?? value.oneOf;
  if (alternatives) return alternatives.map(typeOf).join(' or ');
  if (value.items) return `list of ${typeOf(value.items)}`;
  const type = [value.type ?? []].flat().join(' or ');
  return /^date/.test(value.format ?? '') ? type.replace('string', value.format ?? '') : type;
}

type Response = ResponseObject | ReferenceObject;

const messagesOf = ({ content }: Partial<ResponseObject> = {}): string[] =>
  Object.keys(content?.['application/json']?.examples ?? {});

/** The messages that every one of the operations describes itself. */
function commonMessages(operations: readonly OperationObject[]): ReadonlySet<string> {
  const sets = operations.map(
    ({ responses = {} }) =>
      new Set(
        Object.values<Response>(responses).flatMap((each) => (isReference(each) ? [] : messagesOf(each))),
      ),
  );
  const [first = new Set<string>(), ...others] = sets;
  return new Set([...first].filter((message) => others.every((set) => set.has(message))));
}

/** The messages of each status. Those that are the same on every route are folded. */
function describeErrors(
  responses: OperationObject['responses'] = {},
  components: ComponentsObject,
  common: ReadonlySet<string>,
): string {
  const statuses = Object.entries<Response>(responses).filter(([status]) => status !== '200');
  const rows = (isCommon: boolean) =>
    fieldList(
      statuses.flatMap(([status, response]): [string, string][] => {
        const { description = '', ...rest } = found<ResponseObject>(response, components.responses) ?? {};
        const all = messagesOf(rest);
        const messages = all.filter((each) => (isReference(response) || common.has(each)) === isCommon);
        // A response without messages, such as a 304, is described once too.
        const isShown = messages.length > 0 || (all.length === 0 && isReference(response) === isCommon);
        if (!isShown) return [];
        const says = messages.map((message) => `<code>${escapeHtml(message)}</code>`).join('<br>');
        return [[`<b>${status}</b> ${escapeHtml(description)}`, says]];
      }),
    );
  return rows(false) + folded('As on every route', rows(true));
}
