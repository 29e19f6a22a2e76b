/** The reference of the REST interface: its OpenAPI document, and a page made from it, to read and to try every route. */

import { readFile } from 'node:fs/promises';
import type {
  ComponentsObject,
  OperationObject,
  ParameterObject,
  ReferenceObject,
  SchemaObject,
} from 'openapi3-ts/oas31';
import { addressOf } from '../config/config.ts';
import { restPath } from '../http/exchange.ts';
import { textResponse } from '../http/response.ts';
import { describeRest } from '../rest/openapi.ts';
import { routes } from '../rest/routes.ts';
import { root } from '../root.ts';
import { release } from '../version.ts';
import type { DemoTokenFor } from './demoToken.ts';
import { headerFor, type PageSettings } from './links.ts';
import { type PageHandler, pageByToken, staticFile } from './page.ts';
import { card, escapeHtml, prose, referencePage, section, table } from './template.ts';

/** @param demoTokenFor gives the token that is filled in. */
export async function createDocs(demoTokenFor: DemoTokenFor, settings: PageSettings): Promise<PageHandler> {
  const examples = JSON.parse(await readFile(new URL('src/rest/examples.json', root), 'utf8'));
  const url = addressOf(settings, restPath);
  const document = describeRest({ routes, version: release, examples, url });
  const file = staticFile('openapi.json', async () => JSON.stringify(document));
  const { schemas = {}, ...components } = document.components ?? {};
  const operations = Object.entries(document.paths ?? {}).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const sections = (document.tags ?? []).map(({ name, description = '' }) => {
    const forms = operations
      .filter(({ operation }) => operation.tags.includes(name))
      .map((each) => describeRoute({ ...each, components }));
    return section(name, description, forms);
  });
  const parts = {
    header: headerFor(settings, '/docs'),
    title: 'REST reference',
    description: 'Every route of the REST interface, to read and to try.',
    introduction: `${prose(document.info.description)}
<p><a href="openapi.json">The OpenAPI document</a> has the same, for code generators.</p>`,
  };
  const records = Object.entries(schemas).map(describeRecord);
  sections.push(section('Records', 'What the responses above have in `data`.', records));
  const page = pageByToken(demoTokenFor, 'Accept-Encoding, Host', async (token = '') => {
    const tokenHint = token ? 'That of the demo account.' : 'Each request is sent with it. It is not stored.';
    const input = `<noscript><p>To send requests from here, JavaScript is needed.</p></noscript>
<label>API token
<span>${tokenHint}</span>
<input id="token" autocomplete="off" spellcheck="false" value="${token}">
</label>`;
    const content = [input, ...sections].join('\n');
    return referencePage({ ...parts, content });
  });
  return (exchange) => {
    if (exchange.path === '/openapi.json') return file(exchange);
    if (exchange.path !== '/docs')
      return textResponse(404, `Not found. Try ${addressOf(settings, '/docs')}.`);
    return page(exchange);
  };
}

interface DescribedRoute {
  readonly path: string;
  readonly method: string;
  readonly operation: OperationObject;
  /** What several routes have, by name. */
  readonly components: Pick<ComponentsObject, 'parameters' | 'responses'>;
}

const nameIn = ({ $ref }: ReferenceObject) => $ref.slice($ref.lastIndexOf('/') + 1);
const isReference = (value: object): value is ReferenceObject => '$ref' in value;

function describeRoute({ path, method, operation, components }: DescribedRoute): string {
  const { summary = '', requestBody, responses = {} } = operation;
  const fields = (operation.parameters ?? [])
    .map((each) => (isReference(each) ? components.parameters?.[nameIn(each)] : each))
    .map((each) => (each === undefined || isReference(each) ? '' : inputFor(each)));
  if (requestBody) fields.push(bodyField);
  const statuses = Object.entries(responses).map(([status, response]) => {
    const { description = '' } = isReference(response)
      ? (components.responses?.[nameIn(response)] ?? {})
      : response;
    return [status, escapeHtml(description)];
  });
  const example = responses[200]?.content?.['application/json']?.example;
  const title = `<b>${method.toUpperCase()}</b> <code>${path}</code> ${escapeHtml(summary)}`;
  const form = `<form data-method="${method.toUpperCase()}" data-base="api/v1" data-path="${path}">
${fields.join('\n')}
<button type="submit" class="main">Send</button>
<output hidden><p></p><pre tabindex="0"></pre></output>
<h3>Responses</h3>
${table(statuses)}
<h3>Example of a response</h3>
<pre tabindex="0">${escapeHtml(JSON.stringify(example, null, 2))}</pre>
</form>`;
  return card(escapeHtml(operation.operationId ?? ''), title, form);
}

function inputFor({ name, in: place, required = false, description = '' }: ParameterObject): string {
  const value = place === 'path' ? '1' : '';
  return `<label>${name}<span>${escapeHtml(description)}</span>
<input name="${name}" data-in="${place}" value="${value}"${required ? ' required' : ''} autocomplete="off"></label>`;
}

/** The only body that a route takes. */
const bodyField = `<label>Body<span>JSON</span>
<textarea name="body" data-in="body" spellcheck="false">{"isActive":true}</textarea></label>`;

function describeRecord([name, record]: [string, SchemaObject | ReferenceObject]): string {
  const fields = Object.entries(isReference(record) ? {} : (record.properties ?? {})).map(
    ([field, value]) => [`<code>${field}</code> ${typeOf(value)}`, escapeHtml(value.description ?? '')],
  );
  return card(name, `<code>${name}</code>`, `<div>${table(fields)}</div>`);
}

function typeOf(value: SchemaObject | ReferenceObject): string {
  if (isReference(value)) return `<a href="#${nameIn(value)}">${nameIn(value)}</a>`;
  const alternatives = value.anyOf ?? value.oneOf;
  if (alternatives) return alternatives.map(typeOf).join(' or ');
  if (value.items) return `list of ${typeOf(value.items)}`;
  return [value.type ?? []].flat().join(' or ');
}
