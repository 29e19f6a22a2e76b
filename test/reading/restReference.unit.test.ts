/** The reference of the REST interface, made from its OpenAPI document. */

import type { OperationObject } from 'openapi3-ts/oas31';
import { expect, it } from 'vitest';
import { restReference } from '../../reading/restReference.ts';
import { messages } from '../../src/errors.ts';
import { ambiguities } from '../../src/http/request.ts';
import { routes } from '../../src/rest/routes.ts';
import { pageErrors } from '../../src/schema/loading/pagination.ts';
import { shippedDocument } from '../support/openapiDocument.ts';

/** The entry of each operation. */
const entries = new Map(
  restReference(shippedDocument)
    .split(/<(?:form|article) class="entry/)
    .map((part) => [/id="([^"]*)"/.exec(part)?.[1] ?? '', part]),
);

it('describes each route: an input for each parameter, the fields, and the messages of each status', () => {
  for (const { method, path, name } of routes) {
    const entry = entries.get(name) ?? '';
    expect(entry).toContain(`data-method="${method}" data-base="api/v1" data-path="${path}"`);
    const operation: OperationObject =
      shippedDocument.paths?.[path]?.[method === 'GET' ? 'get' : 'post'] ?? {};
    const inputs = [...entry.matchAll(/data-in="(path|query|header)"/g)];
    expect([path, inputs.length]).toEqual([path, operation.parameters?.length]);
    for (const [status, response] of Object.entries(operation.responses ?? {})) {
      const shared = shippedDocument.components?.responses?.[response.$ref?.replace(/.*\//, '')];
      const content = ('content' in response ? response : shared)?.content?.['application/json'];
      if (status !== '200') expect(entry).toContain(`<b>${status}</b> `);
      for (const message of Object.keys(content?.examples ?? {}))
        expect(entry).toContain(`<code>${message}</code>`);
    }
  }
  expect(entries.get('getDttSession')).toMatch(
    /<code>TrainerSegment<\/code>.*Fields of TrainerSegment.*<code>percentGrade</s,
  );
});

it('folds the messages that every route has, and asks for what its samples ask for', () => {
  const list = entries.get('listDttDevices') ?? '';
  const [open = '', folded = ''] = list.split('<summary>As on every route</summary>');
  const shown = open.slice(open.indexOf('Other statuses'));
  expect([...shown.matchAll(/<code>([^<]*)</g)].map(([, message]) => message)).toEqual([
    pageErrors.size('limit'),
    pageErrors.offset,
  ]);
  for (const message of [messages.invalidId, messages.wrongPosition, ...Object.values(ambiguities)])
    expect(folded).toContain(`<code>${message}</code>`);
  expect(list).toContain('/api/v1/dtt?limit=1&#x27;');
  expect(list).toContain('<input name="limit" data-in="query" value="1"');
  expect(entries.get('activateDttTemplate')).toContain(
    'Send it with <code>Content-Type: application/json</code>',
  );
});
