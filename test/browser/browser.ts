/** A real browser for tests: Chromium, cut off from everything but the gateway, and watched for complaints. */

import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach } from 'vitest';

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

/**
 * Starts a browser for the tests of a file, and skips them, saying why, where there is none. A page may ask where it comes
 * from, and `others`.
 */
export function useBrowser(): { open(url: string, others?: readonly string[]): Promise<Tab> } {
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
  afterAll(() => browser?.close());

  return {
    async open(url, others = []) {
      if (!browser) throw new Error('the browser is not running');
      const page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
      const complaints: string[] = [];
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
      });
      await page.route('**/*', (route) => {
        const asked = route.request().url();
        if ([url, ...others].some((allowed) => new URL(asked).origin === new URL(allowed).origin))
          return route.continue();
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
