/** The settings that a command reads that uses only the database. */

import { expect, it, onTestFinished, vi } from 'vitest';
import { databaseEnvironment } from '../../src/cli/database.ts';
import { readConfig } from '../../src/config/config.ts';

it('ignores an UPSTREAM_TOKEN in the environment, and reads all other settings', () => {
  vi.stubEnv('UPSTREAM_URL', undefined);
  vi.stubEnv('UPSTREAM_TOKEN', 'dvt_secret');
  vi.stubEnv('DATA_DIR', '/data/of/another');
  onTestFinished(() => void vi.unstubAllEnvs());
  // A gateway would not start with this token and without UPSTREAM_URL.
  expect(() => readConfig(process.env)).toThrow('UPSTREAM_TOKEN');
  expect(readConfig(databaseEnvironment())).toMatchObject({ DATA_DIR: '/data/of/another' });
  expect(readConfig(databaseEnvironment()).UPSTREAM_TOKEN).toBeUndefined();
});
