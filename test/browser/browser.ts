/** A real browser for tests: Chromium, which can reach nothing but the gateway, and whose errors and warnings fail the test. */

import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';

const installed = [
  process.env.CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((path) => path && existsSync(path));

export interface Tab {
  readonly page: Page;
  /**
   * Errors and warnings of the browser's console, violations of the content security policy among them, and requests to other
   * origins. A test fails if there is one that it does not expect.
   */
  readonly complaints: string[];
}

/** The size of the window, the language, the time zone and so on; Playwright's default is used for each that is not given. */
export interface TabOptions extends BrowserContextOptions {
  /** Origins to which the page may send requests, beside its own. */
  readonly others?: readonly string[];
  /** The complaints that the test expects; by default none. */
  readonly expected?: RegExp;
  /** Prepares the tab before it opens the address. To open one first and another then takes twice as long. */
  readonly prepare?: ((page: Page) => unknown) | undefined;
}

/** Starts a browser for the tests of a file, or skips them with a reason when none is installed. The tabs of a test are closed after it. */
export function useBrowser(): { open(url: string, options?: TabOptions): Promise<Tab> } {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (!installed) return;
    // No host name resolves, so that neither a page nor the browser itself can reach anything by accident.
    const args = ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'];
    const executablePath = resolve('test/browser/chromium.sh');
    browser = await chromium.launch({ executablePath, args, env: { ...process.env, BROWSER: installed } });
  });
  beforeEach(({ skip }) => {
    skip(!installed, 'there is no Chromium; install the package chromium, or set CHROMIUM to its path');
  });
  const unexpected: (() => string[])[] = [];
  afterEach(async () => {
    const found = unexpected.splice(0).flatMap((list) => list());
    await Promise.all(browser?.contexts().map((context) => context.close()) ?? []);
    expect(found).toEqual([]);
  });
  afterAll(() => browser?.close());

  return {
    async open(url, { others = [], expected, prepare, ...options } = {}) {
      if (!browser) throw new Error('the browser is not running');
      const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, ...options });
      const page = await context.newPage();
      const complaints: string[] = [];
      unexpected.push(() => complaints.filter((text) => !expected?.test(text)));
      const isAllowed = (target: string) =>
        [url, ...others].some((allowed) => new URL(allowed).origin === new URL(target).origin);
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
      });
      page.on('websocket', (socket) => {
        const target = socket.url().replace(/^ws/, 'http');
        if (!isAllowed(target)) complaints.push(`connected to ${socket.url()}`);
      });
      await page.route('**/*', (route) => {
        const target = route.request().url();
        if (isAllowed(target)) return route.continue();
        complaints.push(`requested ${target}`);
        return route.abort();
      });
      await prepare?.(page);
      await page.goto(url);
      return { page, complaints };
    },
  };
}

/** Saves a screenshot of the page in test/output, for people to look at, if the variable SCREENSHOTS is set. */
export async function saveScreenshot(page: Page, name: string): Promise<void> {
  if (!process.env.SCREENSHOTS) return;
  const folder = 'test/output';
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: `${folder}/${name}.png` });
}
