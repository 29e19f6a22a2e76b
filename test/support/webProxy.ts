/** nginx and HAProxy with the configurations that the documentation prints. */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { blocksOf, readPage } from '../docs/markdown.ts';
import { isServed, until } from './until.ts';

type ProxyName = 'nginx' | 'haproxy';

/** Debian has both where only root's shell looks for them. */
const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };

export const hasProxy = (name: ProxyName): boolean => spawnSync(name, ['-v'], { env }).error === undefined;

/** What nginx needs around the printed part: everything that it writes is in its folder. */
const aroundNginx = (printed: string) => `
${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
pid nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`).join(' ')}
  ${printed}
}`;

/** Starts a proxy with the path of the documentation and these ports, and waits until it passes a request on to the gateway. */
export async function startProxy(name: ProxyName, port: number, gatewayPort: number) {
  const [printed] = blocksOf(readPage('docs/deployment.md')).filter(({ language }) => language === name);
  const text = (printed?.text ?? '')
    .replace(/(listen |bind :)80\b/, name === 'nginx' ? `listen 127.0.0.1:${port}` : `bind 127.0.0.1:${port}`)
    .replace('127.0.0.1:4000', `127.0.0.1:${gatewayPort}`);
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-proxy-'));
  const file = join(folder, 'proxy.conf');
  await writeFile(file, name === 'nginx' ? aroundNginx(text) : text);
  const args = name === 'nginx' ? ['-p', folder, '-e', 'stderr', '-c', file] : ['-db', '-f', file];
  const child = spawn(name, args, { env, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (data) => {
    said += data;
  });
  const ended = once(child, 'exit');
  async function close(): Promise<void> {
    child.kill('SIGTERM');
    await ended;
    await rm(folder, { recursive: true });
  }
  await until(`${name} passes requests on`, () => {
    if (child.exitCode !== null) throw new Error(`${name} has ended: ${said}`);
    return isServed(`http://127.0.0.1:${port}/dovetail/healthz`);
  }).catch(async (error) => {
    await close();
    throw error;
  });
  return { close };
}
