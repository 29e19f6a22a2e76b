/** To whom the pages show the token of the demo account: to nobody who comes by a name that others can point here. */

import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDemoTokenFor } from '../../src/pages/demoToken.ts';
import { type DemoGateway, openDemoGateway, openTestGateway, type TestGateway } from '../support/gateway.ts';
import { openRaw, parseResponses } from '../support/rawHttp.ts';

const token = 'dvt_of-the-demo-account';

function requestFor(host: string | undefined, url = '/', headers: Record<string, string> = {}) {
  const request = new IncomingMessage(new Socket());
  request.url = url;
  request.headers = { ...(host !== undefined && { host }), ...headers };
  return request;
}

const isShown = (HOST: string, host: string | undefined, url?: string, headers?: Record<string, string>) =>
  createDemoTokenFor(token, { HOST, SHOW_DEMO_TOKEN: 'off' })(requestFor(host, url, headers)) === token;

const usual = '127.0.0.1';

describe('the demo token', () => {
  it.each([
    [usual, 'localhost'],
    [usual, 'localhost:4000'],
    [usual, 'LocalHost:4000'],
    [usual, 'localhost.'],
    [usual, 'localhost.:4000'],
    [usual, '127.0.0.1:4000'],
    [usual, '127.255.1.9'],
    [usual, '[::1]:4000'],
    [usual, '[0:0:0:0:0:0:0:1]'],
    [usual, '[::ffff:127.0.0.1]'],
    [usual, '[::FFFF:7f00:1]:80'],
    ['localhost', 'localhost'],
    ['192.168.1.5', '192.168.1.5:4000'],
    ['192.168.1.5', 'localhost'],
    ['2001:db8::5', '[2001:db8:0::5]:4000'],
    ['2001:db8::5', '[2001:DB8::5]'],
    ['Gateway.Example', 'gateway.example:4000'],
    ['gateway.example', 'GATEWAY.example.'],
    ['fe80::1%eth0', 'localhost'],
  ])('of a gateway with HOST %s is shown to those who come to %s', (HOST, host) => {
    expect(isShown(HOST, host)).toBe(true);
    expect(isShown(HOST, host, `http://${host}/docs`)).toBe(true);
  });

  it.each<readonly [string, string | undefined]>([
    [usual, undefined],
    [usual, ''],
    [usual, 'rebound.example:4000'],
    [usual, 'localhost.rebound.example'],
    [usual, 'rebound.localhost'],
    [usual, 'localhost@rebound.example'],
    [usual, 'localhost:4000@rebound.example'],
    [usual, 'rebound.example:localhost'],
    [usual, 'localhost, rebound.example'],
    [usual, 'localhost/rebound.example'],
    [usual, 'localhost..'],
    [usual, '127.0.0.1.rebound.example'],
    [usual, '127.0.0.1.'.repeat(2)],
    [usual, '127.0.0.256'],
    [usual, '0.0.0.0:4000'],
    [usual, '128.0.0.1'],
    [usual, '192.168.1.5'],
    [usual, '[::]'],
    [usual, '[::2]'],
    [usual, '[::ffff:192.168.1.5]'],
    [usual, '[::1'],
    [usual, '[localhost]'],
    [usual, '::1'],
    [usual, 'ⓛocalhost'],
    ['192.168.1.5', '192.168.1.50'],
    ['gateway.example', 'www.gateway.example'],
    ...['0.0.0.0', '0', '0x0', '0.0', '::', '0:0::0', '::ffff:0.0.0.0'].flatMap((everywhere) =>
      ['localhost', '127.0.0.1', '[::1]:4000', '192.168.1.5', everywhere, `[${everywhere}]`].map(
        (host) => [everywhere, host] as const,
      ),
    ),
  ])('of a gateway with HOST %s is not shown to those who come to %s', (HOST, host) => {
    expect(isShown(HOST, host)).toBe(false);
  });

  it('is not shown for a target that names another host, nor for what a proxy is said to have been asked', () => {
    expect(isShown(usual, 'localhost', 'http://rebound.example/')).toBe(false);
    expect(isShown(usual, 'localhost', 'http://localhost@rebound.example/')).toBe(false);
    expect(isShown(usual, 'rebound.example', 'http://localhost/')).toBe(false);
    const forwarded = { 'x-forwarded-host': 'localhost', forwarded: 'host=localhost' };
    expect(isShown(usual, 'rebound.example', '/', forwarded)).toBe(false);
  });

  it('is shown to everybody who comes where a setting says so, and nowhere if there is none', () => {
    for (const HOST of [usual, '0.0.0.0', '::']) {
      const tokenFor = createDemoTokenFor(token, { HOST, SHOW_DEMO_TOKEN: 'on' });
      expect(tokenFor(requestFor('gateway.example'))).toBe(token);
      const withoutDemo = createDemoTokenFor(undefined, { HOST, SHOW_DEMO_TOKEN: 'on' });
      expect(withoutDemo(requestFor('localhost'))).toBeUndefined();
    }
  });
});

describe('the page', () => {
  let gateway: DemoGateway;
  let open: TestGateway;
  beforeAll(async () => {
    gateway = await openDemoGateway();
    open = await openTestGateway(
      { ...gateway.database, close: async () => {} },
      { demoToken: gateway.token, settings: { HOST: '0.0.0.0', SHOW_DEMO_TOKEN: 'on' } },
    );
  });
  afterAll(async () => {
    await open?.close();
    await gateway?.close();
  });

  const pageAt = async ({ url }: TestGateway, path: string, host: string, accept: string) => {
    const { socket, ended } = await openRaw(url);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAccept: ${accept}\r\nConnection: close\r\n\r\n`);
    const [response] = parseResponses(await ended());
    return response ?? expect.fail('there was no response');
  };

  it.each([
    ['/', 'text/html'],
    ['/', '*/*'],
    ['/docs', 'text/html'],
    ['/graphql', 'text/html'],
  ])(
    '%s as %s has the demo token for its own names alone, and lets no cache mix them up',
    async (path, accept) => {
      for (const [at, host, shown] of [
        [gateway, '127.0.0.1', true],
        [gateway, 'rebound.example', false],
        [gateway, 'localhost:4000', true],
        [open, 'gateway.example', true],
      ] as const) {
        const { status, headers, body } = await pageAt(at, path, host, accept);
        expect(status).toBe(200);
        // Megabytes, which no failure should print.
        expect({ host, shown: body.includes(gateway.token) }).toEqual({ host, shown });
        expect(headers.vary?.split(', ')).toContain('Host');
        expect(headers['cache-control']).toBe('private, no-cache');
      }
    },
  );
});
