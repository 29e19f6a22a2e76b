/** Checks the OpenAPI document with a linter, so that tools for clients can use it. */

import { createConfig, lintFromString } from '@redocly/openapi-core';
import type { OpenAPIObject } from 'openapi3-ts/oas31';
import { expect, it } from 'vitest';
import { describeShipped } from '../support/openapiDocument.ts';

/** The violations of Redocly's strict rules, one line each. */
async function lint(document: OpenAPIObject): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended-strict'] });
  const problems = await lintFromString({ source: JSON.stringify(document), config });
  return problems.map(({ ruleId, location }) => `${ruleId} ${location[0]?.pointer}`);
}

it('the OpenAPI document conforms to the strict rules of Redocly', async () => {
  expect(await lint(describeShipped())).toEqual([]);
});
