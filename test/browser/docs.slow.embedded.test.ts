/** The REST reference in a browser that opens it for the first time. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DemoGateway, openDemoGateway } from '../support/gateway.ts';
import { useBrowser } from './browser.ts';

const browser = useBrowser();
let gateway: DemoGateway;
beforeAll(async () => {
  gateway = await openDemoGateway();
});
afterAll(() => gateway?.close());

it('sends requests with the demo token, which is filled in already', async () => {
  const { page, complaints } = await browser.open(`${gateway.url}/docs`);
  const route = (path: string, method = 'GET') =>
    page.locator('details', { has: page.locator(`form[data-path="${path}"][data-method="${method}"]`) });
  async function send(path: string, method?: string): Promise<string> {
    const form = route(path, method);
    await form.locator('summary').click();
    await form.getByRole('button', { name: 'Send' }).click();
    const output = form.locator('output');
    await output.waitFor();
    return output.innerText();
  }
  expect(await send('/dtt/templates/active')).toMatch(/GET .*active: 200, \d+ ms.*"Beginner Program"/s);
  await route('/dtt')
    .locator('input[name=limit]')
    .evaluate((input: HTMLInputElement) => {
      input.value = '1';
    });
  expect(await send('/dtt')).toMatch(/GET .*\/dtt\?limit=1: 200.*"limit": 1/s);
  expect(await send('/dtt/templates/{id}', 'POST')).toMatch(/POST .*templates\/1: 200/);
  await page.getByText('That of the demo account').waitFor();
  expect(complaints).toEqual([]);
});

it('the search leaves the cards with all its words, in both references, and a link opens its card', async () => {
  const { page, complaints } = await browser.open(`${gateway.url}/schema`);
  const shown = (selector: string) => page.locator(`${selector}:visible`).allInnerTexts();
  const [all] = [(await shown('summary')).length];
  await page.getByLabel('Search').fill('no such words');
  expect(await shown('summary')).toEqual([]);
  await page.getByText('Nothing has these words.').waitFor();
  expect(await shown('#introduction')).toEqual([]);
  await page.getByLabel('Search').fill('OWNS stays');
  expect(await shown('summary')).toEqual([expect.stringContaining('activateTemplate')]);
  expect(await shown('h2')).toEqual(['Mutations']);
  await page.getByText(`1 of ${all}`).waitFor();
  await page.getByText('activateTemplate').first().click();
  await page.getByRole('link', { name: 'ActivateTemplatePayload' }).click();
  await page.locator('#ActivateTemplatePayload[open]').getByText('scheduleTypeChanged').waitFor();
  await page.goto(`${gateway.url}/docs`);
  await page.getByLabel('Search').fill('/dtt/templates/active');
  expect(await shown('h2')).toEqual(['DTT Templates']);
  expect(complaints).toEqual([]);
});
