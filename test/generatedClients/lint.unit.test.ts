/** The OpenAPI document is one that tools for clients can work with. */

import { createConfig, lintFromString } from '@redocly/openapi-core';
import type { OpenAPIObject } from 'openapi3-ts/oas31';
import { expect, it } from 'vitest';
import { describeShipped } from '../support/openapiDocument.ts';

/** What Redocly's strict rules have to say, in lines. */
async function lint(document: OpenAPIObject): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended-strict'] });
  const problems = await lintFromString({ source: JSON.stringify(document), config });
  return problems.map(({ ruleId, location }) => `${ruleId} ${location[0]?.pointer}`);
}

it('passes the strict rules of Redocly', async () => {
  expect(await lint(describeShipped())).toEqual([]);
  // The rules are at work: they see what is left out.
  const { tags: _, servers: __, ...poorer } = describeShipped();
  expect(await lint(poorer)).not.toEqual([]);
});
