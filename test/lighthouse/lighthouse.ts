/**
 * `npm run lighthouse`: measures every view of the console with Lighthouse, as a desktop and as a phone. Starts the built gateway
 * with the demo account. The exit code is 1 if a score is below the documented one.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import lighthouse, { type Config, defaultConfig, desktopConfig } from 'lighthouse';
import { pageFunctions } from 'lighthouse/core/lib/page-functions.js';
import { launch, type Page } from 'puppeteer-core';
import { views } from '../browser/views.ts';

/** The lowest acceptable scores, of 100. */
const least = 95;

/** The maximum number of measurements of a view. */
const attempts = 3;
const categories = ['performance', 'accessibility', 'best-practices'];

/**
 * The value of Lighthouse's own benchmark index at which a processor that is slowed down four times equals that of a mid-range phone:
 * the middle of the range in its documentation ("Calibrating the CPU slowdown"). A slower machine needs a smaller factor.
 */
const indexOfDesktops = 1_750;
const usualSlowdown = 4;

const { values: options } = parseArgs({
  options: { only: { type: 'string' }, url: { type: 'string' } },
});

const executablePath = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser'].find(
  (path) => path && existsSync(path),
);
if (!executablePath)
  throw new Error('There is no Chromium: install the package chromium, or set CHROMIUM to its path.');

/** Starts the gateway on a free port, with the demo account. */
async function startGateway(): Promise<{ url: string; close(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-lighthouse-'));
  const command = fileURLToPath(new URL('../../bin/dovetail.js', import.meta.url));
  const child = spawn(process.execPath, [command, 'serve'], {
    env: { ...process.env, DATA_DIR: folder, PORT: '0', LOG_LEVEL: 'silent' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const close = async () => {
    const exit = once(child, 'exit');
    child.kill();
    await exit;
    await rm(folder, { recursive: true });
  };
  for await (const line of createInterface({ input: child.stdout })) {
    const [, url] = /^ {2}Start here +(\S+)/.exec(line) ?? [];
    if (!url) continue;
    // Further output is discarded, so that it does not fill the pipe.
    child.stdout.resume();
    return { url, close };
  }
  await rm(folder, { recursive: true });
  throw new Error('The gateway has not started.');
}

/** The speed of this machine: the median of several measurements, since other processes may be running. */
async function measureIndex(page: Page): Promise<number> {
  const found: number[] = [];
  for (let time = 0; time < 5; time++) found.push(await page.evaluate(pageFunctions.computeBenchmarkIndex));
  return found.sort((one, other) => one - other)[2] ?? indexOfDesktops;
}

/** The devices for which views are measured. The processor is slowed down to that of a phone, whatever the machine. */
function formsFor(index: number) {
  const cpuSlowdownMultiplier = Math.min(usualSlowdown, (usualSlowdown * index) / indexOfDesktops);
  const { throttling } = defaultConfig.settings ?? {};
  const telephone: Config = {
    ...defaultConfig,
    settings: { ...defaultConfig.settings, throttling: { ...throttling, cpuSlowdownMultiplier } },
  };
  return { cpuSlowdownMultiplier, forms: { desktop: desktopConfig, telephone } };
}

/** Signs in. The tab stays signed in, since Lighthouse does not clear its session storage. */
async function signIn(page: Page, url: string): Promise<void> {
  await page.goto(`${url}/console`);
  await page.locator('button ::-p-text(demo account)').click();
  await page.waitForSelector('nav');
}

/** The scores of a view, and the audits that lower them. */
async function measure(page: Page, url: string, config: Config) {
  const result = await lighthouse(
    url,
    { onlyCategories: categories, disableStorageReset: true, logLevel: 'error' },
    config,
    page,
  );
  if (!result) throw new Error(`Lighthouse has no result for ${url}.`);
  const { lhr } = result;
  // On a busy machine a part of the recording may be missing.
  if (lhr.runtimeError) return { scores: categories.map(() => 0), lacking: [lhr.runtimeError.message] };
  // Without the token, the sign-in form would have been measured.
  if (!(await page.$('nav'))) throw new Error(`${url} was not signed in.`);
  const scores = categories.map((name) => Math.round((lhr.categories[name]?.score ?? 0) * 100));
  const lacking = Object.values(lhr.audits)
    .filter(
      ({ score, scoreDisplayMode }) => score !== null && score < 0.9 && scoreDisplayMode !== 'informative',
    )
    .map(({ id, displayValue }) => (displayValue ? `${id} (${displayValue})` : id));
  return { scores, lacking };
}

/** Repeats the measurement while a score is too low, since other processes of the machine may slow the view down. */
async function measureBest(...args: Parameters<typeof measure>) {
  const worst = ({ scores }: Awaited<ReturnType<typeof measure>>) => Math.min(...scores);
  let best = await measure(...args);
  for (let attempt = 1; attempt < attempts && worst(best) < least; attempt++) {
    const next = await measure(...args);
    if (worst(next) > worst(best)) best = next;
  }
  return best;
}

const gateway = options.url ? { url: options.url, close: async () => {} } : await startGateway();
const browser = await launch({ executablePath, args: ['--no-sandbox'] });
try {
  const say = (text: string) => process.stdout.write(`${text}\n`);
  const blank = await browser.newPage();
  const index = await measureIndex(blank);
  await blank.close();
  const { cpuSlowdownMultiplier, forms } = formsFor(index);
  say(
    `Lighthouse's benchmark index is ${Math.round(index)}: the telephone's processor is taken to be ${cpuSlowdownMultiplier.toFixed(1)} times slower.`,
  );
  say(`${'form'.padEnd(10)} ${'view'.padEnd(22)} ${categories.join('  ')}`);
  for (const [form, config] of Object.entries(forms)) {
    const page = await browser.newPage();
    await signIn(page, gateway.url);
    for (const [name, { path }] of Object.entries(views)) {
      if (options.only !== undefined && options.only !== name) continue;
      const { scores, lacking } = await measureBest(page, gateway.url + path, config);
      const row = scores.map((score, index) => String(score).padStart(categories[index]?.length ?? 0));
      say(`${form.padEnd(10)} ${path.padEnd(22)} ${row.join('  ')}`);
      for (const audit of lacking) say(`           ${audit}`);
      if (scores.some((score) => score < least)) process.exitCode = 1;
    }
    await page.close();
  }
} finally {
  await browser.close();
  await gateway.close();
}
