/**
 * The OpenAPI document that a gateway sends: programs with the clients that generators make of it compile and run, and the strict rules of
 * Spectral find nothing. `test/generatedClients` does the same with openapi-typescript.
 */

import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { createClient } from '@hey-api/openapi-ts';
import spectral from '@stoplight/spectral-core';
import rulesets from '@stoplight/spectral-rulesets';
import { generate } from 'orval';
import { beforeAll, expect, it } from 'vitest';
import { gatewayWith } from '../../support/setUp.ts';

const folder = resolve('test/large/restClients');

const { gateway, alice } = await gatewayWith(['alice']);
const baseUrl = `${gateway.url}/api/v1`;

beforeAll(async () => {
  const document = `${gateway.url}/openapi.json`;
  rmSync(`${folder}/generated`, { recursive: true, force: true });
  await createClient({
    input: document,
    output: { path: `${folder}/generated/heyApi`, importFileExtension: '.ts' },
    plugins: ['@hey-api/client-fetch', '@hey-api/sdk', '@hey-api/typescript'],
    // A failure is reported by the test, and not by a file in the current folder.
    logs: { level: 'silent', file: false },
  });
  await generate({
    input: { target: document },
    output: { target: `${folder}/generated/orval/client.ts`, client: 'fetch', baseUrl },
  });
});

it('programs with generated clients compile', () => {
  execFileSync(process.execPath, [resolve('node_modules/typescript/bin/tsc'), '-p', folder]);
});

it.each([
  // Loaded once their clients were generated.
  ['@hey-api/openapi-ts', () => import('./heyApi.ts')],
  ['orval', () => import('./orval.ts')],
] as const)('a program with the client of %s runs', async (_, load) => {
  const { run } = await load();
  expect(await run(baseUrl, alice.token)).toEqual({
    id: alice.dttTemplates[0],
    segments: ['warmup of 60 s', 'training of 300 s'],
    isLocked: true,
    error: 'DTT device not found',
  });
});

it('the strict rules of Spectral find nothing', async () => {
  const linter = new spectral.Spectral();
  linter.setRuleset({
    extends: [[rulesets.oas, 'all']],
    rules: {
      // A gateway does not know the addresses of its operator.
      'contact-properties': 'off',
      // The licence has an identifier, and may not have both.
      'license-url': 'off',
      // The tags have the order of the interface.
      'openapi-tags-alphabetical': 'off',
    },
  });
  const document = await (await fetch(`${gateway.url}/openapi.json`)).text();
  const problems = await linter.run(document);
  expect(problems.map(({ code, path }) => `${code} ${path.join('/')}`)).toEqual([]);
});
