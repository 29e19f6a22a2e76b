/** A real browser for tests: Chromium, cut off from everything but the gateway, and watched for complaints. */

import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';

const executablePath = [
  process.env.CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((path) => path && existsSync(path));

/** A name that somebody else has given to this machine. */
export const reboundName = 'rebound.example';

export interface Tab {
  readonly page: Page;
  /** Errors and warnings of the console, what the page's policy refused among them, and requests to elsewhere. */
  readonly complaints: string[];
}

/** The screen, the language, the clocks and so on; whatever is not given is as it would be without a choice. */
export interface TabOptions extends BrowserContextOptions {
  /** What else a page may ask beside where it comes from. */
  readonly others?: readonly string[];
}

/** Starts a browser for the tests of a file, and skips them, saying why, where there is none. Each test closes its tabs. */
export function useBrowser(): { open(url: string, options?: TabOptions): Promise<Tab> } {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (!executablePath) return;
    // Without names nothing can be reached by accident, not even by the browser itself. One name leads to this machine, as
    // any name can be made to.
    const args = [`--host-resolver-rules=MAP ${reboundName} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1`];
    browser = await chromium.launch({ executablePath, args });
  });
  beforeEach(({ skip }) => {
    skip(!executablePath, 'there is no Chromium; install the package chromium, or set CHROMIUM to its path');
  });
  afterEach(async () => {
    await Promise.all(browser?.contexts().map((context) => context.close()) ?? []);
  });
  afterAll(() => browser?.close());

  return {
    async open(url, { others = [], ...options } = {}) {
      if (!browser) throw new Error('the browser is not running');
      const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, ...options });
      const page = await context.newPage();
      const complaints: string[] = [];
      const mayAsk = (asked: string) =>
        [url, ...others].some((allowed) => new URL(allowed).origin === new URL(asked).origin);
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
      });
      page.on('websocket', (socket) => {
        const asked = socket.url().replace(/^ws/, 'http');
        if (!mayAsk(asked)) complaints.push(`asked for ${socket.url()}`);
      });
      await page.route('**/*', (route) => {
        const asked = route.request().url();
        if (mayAsk(asked)) return route.continue();
        complaints.push(`asked for ${asked}`);
        return route.abort();
      });
      await page.goto(url);
      return { page, complaints };
    },
  };
}

/** Keeps what the page looks like, for people to see. */
export async function keepScreenshot(page: Page, name: string): Promise<void> {
  const folder = 'test/output';
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: `${folder}/${name}.png` });
}
