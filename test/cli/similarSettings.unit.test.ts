import { describe, expect, it } from 'vitest';
import { findSimilarSettings } from '../../src/cli/similarSettings.ts';

describe('a variable of the environment', () => {
  it.each([
    ['DATABSE_URL', 'DATABASE_URL'],
    ['DATABASEURL', 'DATABASE_URL'],
    ['database_url', 'DATABASE_URL'],
    ['LOGLEVEL', 'LOG_LEVEL'],
    ['LOG_LEVELS', 'LOG_LEVEL'],
    ['CORS_ORIGIN', 'CORS_ORIGINS'],
    ['DATADIR', 'DATA_DIR'],
    ['RATELIMIT', 'RATE_LIMIT'],
    ['WORKER', 'WORKERS'],
    ['port', 'PORT'],
  ])('gets a warning if it is similar to a setting: %s', (given, meant) => {
    expect(findSimilarSettings({ [given]: 'x' })).toEqual([
      `${given} is no setting, and has no effect: is ${meant} meant?`,
    ]);
  });

  it.each([
    ['is another word', { HOSTNAME: 'x', HOSTS: 'x', POST: 'x', PATH: 'x', HOME: 'x', TOKEN: 'x' }],
    ['is empty', { LOGLEVEL: '' }],
    ['is set beside the setting', { CORS_ORIGIN: 'x', CORS_ORIGINS: 'x' }],
    ['has the former name of a setting', { KEEP_ANSWERS_MB: '1' }],
    [
      'belongs to another program',
      { OTEL_EXPORTER_OTLP_HEADERS: 'x', DATABASE_PASSWORD: 'x', MAX_WIDTH: 'x' },
    ],
  ])('gets no warning if it %s', (_, env) => {
    expect(findSimilarSettings(env)).toEqual([]);
  });
});
