/** The programs of docs/rest.md that follow routes: in a browser, in Python, and those of Home Assistant. Meanwhile the gateway is away. */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, afterEach, expect, it } from 'vitest';
import { parse } from 'yaml';
import { blocksOf } from '../docs/markdown.ts';
import { createAccount, setActive } from '../support/accounts.ts';
import { freePort } from '../support/freePort.ts';
import { openBeside, openTestGateway } from '../support/gateway.ts';
import { listen } from '../support/listen.ts';
import { newFolder } from '../support/newFolder.ts';
import { databaseWith } from '../support/setUp.ts';
import { useBrowser } from './browser.ts';

/** The block of the page that contains the text. */
const blockWith = (text: string) =>
  blocksOf(readFileSync('docs/rest.md', 'utf8')).find((block) => block.text.includes(text))?.text ??
  expect.fail(text);

const browser = useBrowser();
const { database, alice } = await databaseWith('alice');
const folder = newFolder();
for (const name of ['follow.py', 'changed.py']) writeFileSync(join(folder, name), blockWith(`# ${name}:`));

const modules = new Map(
  ['eventsource', 'eventsource-parser'].map((name) => [
    `/${name}.js`,
    readFileSync(`node_modules/${name}/dist/index.js`, 'utf8'),
  ]),
);
let html = '';
const frontend = createServer(({ url = '' }, response) => {
  const script = modules.get(url);
  response
    .setHeader('Content-Type', script === undefined ? 'text/html' : 'text/javascript')
    .end(script ?? html);
});
const origin = await listen(frontend);
afterAll(() => void frontend.close());

const port = await freePort();
const start = async () =>
  openTestGateway(await openBeside(database), { port, settings: { CORS_ORIGINS: origin } });
let gateway = await start();
afterAll(() => gateway.close());
const here = (text: string) => text.replaceAll('http://localhost:4000', gateway.url);

const programs: ChildProcess[] = [];
afterEach(() => {
  for (const program of programs.splice(0)) program.kill();
});

const rename = (name: string) =>
  database.client.dttTemplate.update({ where: { id: alice.dttTemplates[0] }, data: { name } });
const path = `/dtt/templates/${alice.dttTemplates[0]}`;

it('an EventSource in a browser and a program in Python follow a route across an outage of 8 seconds, and miss nothing', async () => {
  const code = here(blockWith("from 'eventsource'")).replace('/dtt/templates/active', path);
  html = `<!doctype html><ul></ul>
<script type="importmap">{"imports":{"eventsource":"/eventsource.js","eventsource-parser":"/eventsource-parser.js"}}</script>
<script type="module">
const token = '${alice.token}';
const show = ({ ok, data, error }) => {
  const textContent = ok ? data.name : error;
  document.querySelector('ul').append(Object.assign(document.createElement('li'), { textContent }));
};
${code}</script>`;
  const { page } = await browser.open(origin, {
    others: [gateway.url],
    expected: /ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING)|401/,
  });
  const inPython: string[] = [];
  const python = spawn('python3', [join(folder, 'follow.py'), `${gateway.url}/api/v1${path}`], {
    env: { ...process.env, TOKEN: alice.token },
  });
  programs.push(python);
  createInterface(python.stdout).on('line', (line) => {
    const { ok, data, error } = JSON.parse(line);
    inPython.push(ok ? data.name : error);
  });
  let problem = '';
  python.stderr.on('data', (text) => {
    problem += text;
  });
  const inBrowser = () => page.locator('li').allTextContents();
  const both = async (names: readonly string[]) => {
    await expect.poll(inBrowser, { timeout: 30_000 }).toEqual(names);
    await expect.poll(() => inPython, { timeout: 30_000 }).toEqual(names);
  };
  await both(['Program 0 of alice']);
  await rename('second');
  await both(['Program 0 of alice', 'second']);

  // Nothing has changed in the first outage, and something in the second one.
  for (const changed of [false, true]) {
    await gateway.close();
    await sleep(4_000);
    if (changed) await rename('third');
    await sleep(4_000);
    gateway = await start();
    await expect.poll(async () => gateway.connections(), { timeout: 30_000 }).toBeGreaterThanOrEqual(2);
    await sleep(1_000);
    await both(['Program 0 of alice', 'second', ...(changed ? ['third'] : [])]);
  }
  await rename('fourth');
  await both(['Program 0 of alice', 'second', 'third', 'fourth']);

  await database.client.apiToken.updateMany({
    where: { userId: alice.userId },
    data: { revokedAt: new Date() },
  });
  await both(['Program 0 of alice', 'second', 'third', 'fourth', 'Unauthorized']);
  await expect.poll(() => problem).toContain('401 {"ok":false');
  expect(problem).toContain('Connection refused');
  expect(problem).not.toContain('Traceback');
});

it('the REST sensor of Home Assistant reads what its template names', async () => {
  const bob = await createAccount(database.client, 'bob');
  await setActive(database.client, bob, 1);
  const [sensor] = parse(blockWith('platform: rest')).sensor;
  const headers = { Authorization: sensor.headers.Authorization.replace('TOKEN', bob.token), Accept: '*/*' };
  const response = await fetch(here(sensor.resource), { headers });
  expect(shownBy(sensor.value_template, await response.json())).toBe('Program 1 of bob');
});

/** What a template makes of a response. */
function shownBy(template: string, response: unknown): unknown {
  const [, names = ''] = /\{\{ value_json\.([\w.]+)/.exec(template) ?? expect.fail(template);
  // biome-ignore lint/suspicious/noExplicitAny: JSON of any shape.
  return names.split('.').reduce((value: any, name) => value?.[name], response);
}

it('the command-line sensor of Home Assistant shows a change as soon as there is one', async () => {
  const carol = await createAccount(database.client, 'carol');
  const [{ sensor }] = parse(blockWith('command_line:')).command_line;
  const command = here(sensor.command)
    .replace('TOKEN=…', `TOKEN=${carol.token}`)
    .replace('/config/', `${folder}/`);
  const run = async () => {
    const began = performance.now();
    const { stdout } = await promisify(execFile)('sh', ['-c', command]);
    return { value: shownBy(sensor.value_template, JSON.parse(stdout)), took: performance.now() - began };
  };
  const first = await run();
  expect(first.value).toBe('locked');
  expect(first.took).toBeLessThan(20_000);
  const second = run();
  await sleep(4_000);
  const changed = performance.now();
  await database.client.lockSession.update({
    where: { id: carol.lockSessions[0] },
    data: { lockState: 'break' },
  });
  expect((await second).value).toBe('break');
  expect((await second).took).toBeGreaterThan(4_000);
  expect(performance.now() - changed).toBeLessThan(10_000);
  expect(sensor.command_timeout).toBeGreaterThan(50);
});
