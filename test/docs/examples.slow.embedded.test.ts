/** Every example of a command in the documentation is run as it is written, and must print what the page says. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { copyFolder } from '../support/copyFolder.ts';
import { endProcesses, serve } from '../support/processes.ts';
import { exitCodeOf, notRun, type Place, patternOf, reasonNotToRun, runBlocks } from './examples.ts';
import { blocksOf, pages, readPage } from './markdown.ts';

let place: Place;
beforeAll(async () => {
  const engine = inject('engine');
  if (engine.kind !== 'embedded') throw new Error('there is no data folder to copy');
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-docs-'));
  // The data of the gateway, of a second gateway that the examples start, and of a mirror.
  for (const name of ['.data', 'spare', 'mirror']) await copyFolder(engine.template, join(folder, name));
  const { url } = await serve({ DATA_DIR: join(folder, '.data') });
  const token = (await readFile(join(folder, '.data', 'demo-token'), 'utf8')).trim();
  place = {
    root: process.cwd(),
    folder,
    gateway: new URL(url).host,
    replacements: [
      ['https://example.com/api/v1', `${url}/api/v1`],
      ['UPSTREAM_TOKEN=…', `UPSTREAM_TOKEN=${token}`],
      ['TOKEN=…', `TOKEN=${token}`],
      ['your_name', 'demo'],
      // The preamble of the shell replaces the address for `curl`; for other programs it is replaced here.
      ['openapi-typescript http://localhost:4000', `openapi-typescript ${url}`],
    ],
  };
});
afterAll(async () => {
  await endProcesses();
  await rm(place.folder, { recursive: true, force: true });
});

const examples = pages.flatMap((page) => {
  const blocks = blocksOf(readPage(page)).filter(({ language }) => language === 'sh');
  return blocks.length > 0 ? [{ page, blocks }] : [];
});

describe.each(examples)('$page', ({ page, blocks }) => {
  const run = blocks.filter((block) => reasonNotToRun(block) === undefined);
  if (run.length > 0)
    it('has commands that print what the page says and exit with the expected code', async ({ signal }) => {
      for (const { line, command, expected, stdout, code } of await runBlocks(run, place, signal)) {
        const where = `${page}, the block of line ${line}: ${command}`;
        if (expected !== undefined) expect(stdout, where).toMatch(patternOf(expected));
        expect(code, where).toBe(exitCodeOf(command));
      }
      // The commands of a page load the program half a dozen times, on a machine that may be busy.
    }, 120_000);

  for (const block of blocks) {
    const reason = reasonNotToRun(block);
    if (reason !== undefined)
      it(`has an example that is not run in line ${block.line}`, ({ skip }) => skip(reason));
  }
});

it('lists no example as not run that is on no page', () => {
  const texts = examples.flatMap(({ blocks }) => blocks.map(({ text }) => text));
  const unused = Object.keys(notRun).filter((beginning) => !texts.some((text) => text.startsWith(beginning)));
  expect(unused).toEqual([]);
});
