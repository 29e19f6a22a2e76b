/** The manifests for Kubernetes have the types of its API, fit each other, and ask for no rights that the restricted profile forbids. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Deployment } from 'kubernetes-types/apps/v1.js';
import type { Service } from 'kubernetes-types/core/v1.js';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.js';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { readPage } from '../docs/markdown.ts';
import { readConfig, variables } from '../support/settings.ts';

const folder = 'ops/kubernetes';
const read = (name: string) => parse(readFileSync(join(folder, name), 'utf8'));
// The first test checks these types.
const deployment: Deployment = read('deployment.yaml');
const service: Service = read('service.yaml');
const budget: PodDisruptionBudget = read('disruption-budget.yaml');
const pod = deployment.spec?.template.spec;
const [gateway] = pod?.containers ?? [];
const env = Object.fromEntries(gateway?.env?.map(({ name, value = '' }) => [name, value]) ?? []);

/** What TypeScript says about manifests, as literals of the types of their kinds. It finds fields that the API does not have. */
function complaintsAbout(manifests: readonly { apiVersion: string; kind: string }[]): string[] {
  const lines = manifests.map((manifest, index) => {
    const { apiVersion, kind } = manifest;
    const group = apiVersion === 'v1' ? 'core/v1' : apiVersion;
    return `import type { ${kind} as Kind${index} } from 'kubernetes-types/${group}';
      export const manifest${index}: Kind${index} = ${JSON.stringify(manifest)};`;
  });
  const file = join(process.cwd(), 'manifests.ts');
  const options = {
    strict: true,
    types: [],
    lib: ['lib.es5.d.ts'],
    skipLibCheck: true,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  };
  const host = ts.createCompilerHost(options);
  const readOther = host.readFile;
  host.readFile = (name) => (name === file ? lines.join('\n') : readOther(name));
  const program = ts.createProgram([file], options, host);
  return ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

it('they have fields that Kubernetes knows, with values of their types', () => {
  const misspelt = JSON.parse(JSON.stringify(deployment).replace('"readinessProbe"', '"readynessProbe"'));
  expect(complaintsAbout([...readdirSync(folder).map(read), misspelt])).toEqual([
    expect.stringContaining('\'"readynessProbe"\' does not exist'),
  ]);
});

it('they fit each other', () => {
  const labels = deployment.spec?.template.metadata?.labels;
  for (const selected of [deployment.spec?.selector, budget.spec?.selector])
    expect(labels).toMatchObject(selected?.matchLabels ?? { none: 'selected' });
  expect(labels).toMatchObject(service.spec?.selector ?? { none: 'selected' });
  const ports = gateway?.ports?.map(({ name }) => name) ?? [];
  const probes = [gateway?.startupProbe, gateway?.livenessProbe, gateway?.readinessProbe];
  expect(probes.map((probe) => probe?.httpGet?.path)).toEqual(['/healthz', '/healthz', '/readyz']);
  for (const probe of probes) expect(ports).toContain(probe?.httpGet?.port);
  for (const { targetPort } of service.spec?.ports ?? []) expect(ports).toContain(targetPort);
  const mounted = gateway?.volumeMounts?.map(({ name }) => name);
  expect(pod?.volumes?.map(({ name }) => name)).toEqual(mounted);
});

it('the settings are valid, the Secret is the one that the page makes, and no request is cut off', () => {
  const { DOVETAIL_COMMAND, DATABASE_URL_FILE = '', ...settings } = env;
  expect([...variables, 'DOVETAIL_COMMAND']).toEqual(expect.arrayContaining(Object.keys(env)));
  const { SHUTDOWN_DELAY, STATEMENT_TIMEOUT, PORT } = readConfig(settings);
  expect(gateway?.ports?.map(({ containerPort }) => String(containerPort))).toEqual([
    String(PORT),
    settings.METRICS_PORT,
  ]);
  expect(pod?.terminationGracePeriodSeconds).toBeGreaterThan(SHUTDOWN_DELAY + STATEMENT_TIMEOUT + 10);
  const [, secret, file] =
    /kubectl create secret generic (\S+) --from-file=(\S+)/.exec(readPage('docs/deployment.md')) ?? [];
  const volume = pod?.volumes?.find((each) => each.secret?.secretName === secret);
  const mount = gateway?.volumeMounts?.find(({ name }) => name === volume?.name);
  expect(DATABASE_URL_FILE).toBe(`${mount?.mountPath}/${file}`);
  expect(DOVETAIL_COMMAND).toContain(`deployment/${deployment.metadata?.name} -- dovetail`);
});

it('the pods ask for what the restricted Pod Security Standard allows, and may write to /tmp alone', () => {
  expect(pod).not.toMatchObject({ hostNetwork: true });
  expect(pod).toMatchObject({
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  });
  for (const { name: _, ...source } of pod?.volumes ?? [])
    expect(['secret', 'emptyDir']).toEqual(expect.arrayContaining(Object.keys(source)));
  expect(pod?.containers).toHaveLength(1);
  expect(gateway?.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  const writable = gateway?.volumeMounts?.filter(({ readOnly }) => !readOnly);
  expect(writable?.map(({ mountPath }) => mountPath)).toEqual(['/tmp']);
});
