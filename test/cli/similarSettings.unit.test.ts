import { expect, it } from 'vitest';
import { runHere } from '../support/runHere.ts';

const warningsFor = async (env: Record<string, string>) => {
  const { stderr } = await runHere(['doctor', '--json'], { PORT: 'none', ...env });
  return stderr;
};

it.each([
  ['DATABSE_URL', 'DATABASE_URL'],
  ['database_url', 'DATABASE_URL'],
  ['LOGLEVEL', 'LOG_LEVEL'],
  ['MAX_WATIING', 'MAX_WAITING'],
  ['MAX_WEETING', 'MAX_WAITING'],
  ['port', 'PORT'],
  ['PROT', 'PORT'],
  ['MAX_DETPH', 'MAX_DEPTH'],
])('warns of a variable that is similar to a setting: %s', async (given, meant) => {
  const env = { [given]: 'x', ...(meant === 'PORT' && { PORT: '' }) };
  expect(await warningsFor(env)).toBe(`${given} is no setting, and has no effect: is ${meant} meant?\n`);
});

it.each([
  ['is another word', { HOSTNAME: 'x', HOSTS: 'x', POST: 'x', TOKEN: 'x' }],
  ['is empty', { LOGLEVEL: '' }],
  ['is set beside the setting', { CORS_ORIGIN: 'x', CORS_ORIGINS: 'x' }],
  ['belongs to another program', { OTEL_EXPORTER_OTLP_HEADERS: 'x', DATABASE_PASSWORD: 'x', MAX_WIDTH: 'x' }],
])('does not warn of a variable that %s', async (_, env) => {
  expect(await warningsFor(env)).toBe('');
});
