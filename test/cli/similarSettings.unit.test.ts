import { describe, expect, it } from 'vitest';
import { findSimilarSettings } from '../../src/cli/similarSettings.ts';

describe('a variable that is nearly a setting', () => {
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
  ])('is told of, with the setting: %s', (given, meant) => {
    expect(findSimilarSettings({ [given]: 'x' })).toEqual([
      `${given} is no setting, and has no effect: is ${meant} meant?`,
    ]);
  });

  it.each([
    ['is another word', { HOSTNAME: 'x', HOSTS: 'x', POST: 'x', PATH: 'x', HOME: 'x', TOKEN: 'x' }],
    ['is empty', { LOGLEVEL: '' }],
    ['stands beside the setting', { CORS_ORIGIN: 'x', CORS_ORIGINS: 'x' }],
    ['has the name that a setting had once', { KEEP_ANSWERS_MB: '1' }],
    ['is none of ours', { OTEL_EXPORTER_OTLP_HEADERS: 'x', DATABASE_PASSWORD: 'x', MAX_WIDTH: 'x' }],
  ])('is not told of where it %s', (_, env) => {
    expect(findSimilarSettings(env)).toEqual([]);
  });
});
