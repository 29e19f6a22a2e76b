/** The findings of the doctor about settings, machine and embedded database, and how the command prints them. */

import { chmod, readdir, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openGateway } from '../../../src/server/gateway.ts';
import { copyTemplate } from '../../support/gateway.ts';
import { newFolder } from '../../support/newFolder.ts';
import { runHere } from '../../support/runHere.ts';
import { readConfig } from '../../support/settings.ts';
import { examine, problemsWith as problemsOf } from './findings.ts';

const empty = newFolder();

const problemsWith = (settings: Record<string, string>) => problemsOf({ DATA_DIR: empty, ...settings });

async function copyDatabase(): Promise<string> {
  const folder = await copyTemplate();
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await chmod(join(folder, 'postgres'), 0o700);
  return folder;
}

it('finds no problem before the first start, and creates nothing', async () => {
  const settings = { DATA_DIR: join(empty, 'data') };
  const { code, stdout, stderr } = await runHere(['doctor'], settings);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(
    new RegExp(
      `^✔ node             Node \\d.*
✔ settings         all of them can be used
✔ database         embedded, none yet: it will be in ${join(empty, 'data')}
$`,
    ),
  );
  expect(await readdir(empty)).toEqual([]);
});

it('exits with 1, and names every invalid setting with advice', async () => {
  const wrong = { PORT: 'http', LOG_LEVEL: 'loud' };
  const { code, stdout, stderr } = await runHere(['doctor', '--json'], wrong);
  expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
  const says = 'PORT is "http", but takes an integer from 0 to 65535.';
  const advice = 'Correct the variable, or unset it for the default.';
  expect(JSON.parse(stdout)).toEqual({
    ok: false,
    findings: [
      { check: 'settings', state: 'problem', says, advice },
      { check: 'settings', state: 'problem', says: expect.stringMatching(/^LOG_LEVEL is "loud"/), advice },
    ],
  });
  const asText = await runHere(['doctor'], wrong);
  expect(asText.stdout).toContain(`✖ settings         ${says}\n                   → ${advice}\n`);
});

it.each<[string, Record<string, string>, string, RegExp]>([
  [
    'settings that contradict each other',
    { PERSISTED_OPERATIONS: 'only' },
    'settings',
    /needs PERSISTED_OPERATIONS_FILE/,
  ],
  ['a DATA_DIR that is too long', { DATA_DIR: `/${'a'.repeat(200)}` }, 'database', /takes a path of at most/],
  ['an upstream out of reach', { UPSTREAM_URL: 'http://127.0.0.1:1' }, 'upstream', /^GET \/users\/me: /],
])('finds a problem with %s', async (_, settings, check, says) => {
  expect(await problemsWith(settings)).toMatchObject([{ check, says: expect.stringMatching(says) }]);
});

it('finds a damaged database', async () => {
  const folder = await copyDatabase();
  expect(await problemsWith({ DATA_DIR: folder })).toEqual([]);
  await truncate(join(folder, 'postgres/global/pg_control'), 100);
  expect(await problemsWith({ DATA_DIR: folder })).toMatchObject([
    { check: 'database', says: expect.stringMatching(/cannot be opened: /) },
  ]);
});

it('recognises the database of a running gateway', async () => {
  const folder = await copyDatabase();
  const gateway = await openGateway(readConfig({ DATA_DIR: folder, PORT: '0', LOG_LEVEL: 'silent' }));
  onTestFinished(() => gateway.close());
  const findings = await examine({ DATA_DIR: folder });
  expect(findings.filter(({ state }) => state !== 'ok')).toEqual([]);
  const says = `embedded, in ${folder}, open in a running gateway`;
  expect(findings.map((finding) => finding.says)).toContain(says);
});
