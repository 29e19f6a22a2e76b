/** The options that the gateway sets in V8, which ignores those that it does not know. */

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const source = fileURLToPath(new URL('../../src/', import.meta.url));

const options = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .flatMap((name) => [
    ...readFileSync(join(source, name), 'utf8').matchAll(/setFlagsFromString\('([^']+)'\)/g),
  ])
  .map(([, option = '']) => option);

describe('the options that the gateway sets in V8', () => {
  it('include the one about where objects are created', () => {
    expect(options).toContain('--no-allocation-site-pretenuring');
  });

  it.each([...new Set(options)])('include %s, which the V8 of this Node knows', (option) => {
    // Node exits with 9 for an option that neither it nor V8 knows.
    expect(spawnSync(process.execPath, [option, '-e', '0']).status).toBe(0);
  });
});
