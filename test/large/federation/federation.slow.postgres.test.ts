/** The example of docs/tools.md: a second subgraph, composed with the gateway and served by Hive Gateway. */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { blocksOf, readPage } from '../../docs/markdown.ts';
import { freePort } from '../../support/freePort.ts';
import { graphqlOnce } from '../../support/gateway.ts';
import { gatewayWith } from '../../support/setUp.ts';
import { isListening, until } from '../../support/until.ts';

const folder = resolve('test/large/federation/generated');

const { gateway, alice, bob } = await gatewayWith(['alice', 'bob'], { settings: { FEDERATION: 'on' } });
let composed: string;
let url: string;
const running: ChildProcess[] = [];

beforeAll(async () => {
  writeExample();
  const [notes, served] = [await freePort(), await freePort()];
  url = `http://127.0.0.1:${served}`;
  const env = {
    ...process.env,
    NOTES_PORT: String(notes),
    GATEWAY_PORT: String(served),
    DOVETAIL_URL: `${gateway.url}/graphql`,
    NOTES_URL: `http://127.0.0.1:${notes}/graphql`,
  };
  run('notes.mjs', env);
  await untilServed(env.NOTES_URL);
  const composing = promisify(execFile)(process.execPath, ['compose.mjs'], { cwd: folder, env });
  composed = (await composing).stderr;
  run('gateway.mjs', env);
  await untilServed(`${url}/graphql`);
}, 120_000);

afterAll(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** Writes the files that the page shows. Each account has a session with a note. */
function writeExample(): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const [ofAlice, ofBob] = [alice.dttSessions[0], bob.dttSessions[0]];
  for (const { text } of blocksOf(readPage('docs/tools.md'))) {
    const [, name] = /^\/\/ (\S+\.mjs)\n/.exec(text) ?? [];
    const own = text
      .replace('sessionId: 1', `sessionId: ${ofAlice}`)
      .replace('sessionId: 2', `sessionId: ${ofBob}`);
    if (name !== undefined) writeFileSync(join(folder, name), own);
  }
}

function run(file: string, env: NodeJS.ProcessEnv): void {
  running.push(spawn(process.execPath, [file], { cwd: folder, env, stdio: 'inherit' }));
}

const untilServed = (address: string) =>
  until(`${address} is served`, () => isListening(Number(new URL(address).port)));

it('composes both subgraphs without errors or hints', () => {
  expect(composed).toBe('');
  const supergraph = readFileSync(join(folder, 'supergraph.graphql'), 'utf8');
  expect(supergraph).toContain('@join__type(graph: DOVETAIL, key: "databaseId")');
  expect(supergraph).toContain('@join__type(graph: NOTES, key: "databaseId")');
});

const joinedQuery = '{ dttSessions(first: 50) { nodes { databaseId note } } }';

it('joins the records of both subgraphs, for each user only their own', async () => {
  for (const [account, note] of [
    [alice, 'Slept well before it'],
    [bob, 'Too late in the evening'],
  ] as const) {
    const { data, errors } = await graphqlOnce({ url }, account.token, joinedQuery);
    expect(errors).toBeUndefined();
    const [first, ...others] = account.dttSessions;
    expect(data.dttSessions.nodes).toEqual([
      { databaseId: first, note },
      ...others.map((databaseId) => ({ databaseId, note: null })),
    ]);
  }
});
