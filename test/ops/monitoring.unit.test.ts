/** The dashboard, the alerts and the unit of systemd hold what the documentation says of them. */

import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { metricsIn, pages } from '../docs/markdown.ts';
import { variables } from '../support/settings.ts';

const run = promisify(execFile);
const isInstalled = (program: string) => spawnSync(program, ['--version']).error === undefined;

it('the dashboard shows each documented metric, and the alerts use no others', () => {
  const documented = pages.flatMap((page) => metricsIn(page)).map(({ name }) => name);
  const namesIn = (file: string) =>
    new Set(
      readFileSync(file, 'utf8')
        .match(/dovetail_\w+/g)
        ?.map((name) => name.replace(/_bucket$/, '')),
    );
  expect(documented.length).toBeGreaterThan(10);
  expect([...namesIn('ops/grafana.json')].sort()).toEqual(documented.toSorted());
  expect(documented).toEqual(expect.arrayContaining([...namesIn('ops/alerts.yaml')]));
});

it('each alert fires when it should and not before', async ({ skip }) => {
  skip(!isInstalled('promtool'), 'promtool is not installed');
  const tested = readFileSync('ops/alerts.test.yaml', 'utf8');
  for (const [, alert] of readFileSync('ops/alerts.yaml', 'utf8').matchAll(/- alert: (\w+)/g))
    expect(tested).toMatch(new RegExp(`alertname: ${alert}\\n +exp_alerts:\\n`));
  await run('promtool', ['test', 'rules', 'ops/alerts.test.yaml']);
});

it('the scrape is valid, and its job is the one that the alerts name', async ({ skip }) => {
  const { scrape_configs, rule_files } = parse(readFileSync('ops/prometheus.yaml', 'utf8'));
  const jobs = new Set(readFileSync('ops/alerts.yaml', 'utf8').match(/(?<=job=")\w+/g));
  expect([scrape_configs.map((each: { job_name: string }) => each.job_name), rule_files]).toEqual([
    [...jobs],
    ['alerts.yaml'],
  ]);
  skip(!isInstalled('promtool'), 'promtool is not installed');
  await run('promtool', ['check', 'config', 'ops/prometheus.yaml']);
});

it('the collector takes traces where the documentation sends them', () => {
  const { receivers, exporters, service } = parse(readFileSync('ops/otel-collector.yaml', 'utf8'));
  const { host } = new URL(
    /(?<=OTEL_EXPORTER_OTLP_ENDPOINT=)\S+/.exec(readFileSync('docs/operations.md', 'utf8'))?.[0] ?? '',
  );
  expect(receivers.otlp.protocols.http.endpoint).toBe(host);
  expect(service.pipelines.traces).toMatchObject({
    receivers: Object.keys(receivers),
    exporters: Object.keys(exporters),
  });
});

it('the unit of systemd names settings that exist, and leaves the service few rights', async ({ skip }) => {
  const unit = readFileSync('ops/dovetail.service', 'utf8');
  const settings = readFileSync('ops/dovetail.env', 'utf8');
  const names = [...`${unit}${settings}`.matchAll(/(?<=^#?|[= ])([A-Z_]{3,})=/gm)].map(([, name]) => name);
  const known = [...variables, 'NODE_ENV', 'DOVETAIL_COMMAND'];
  expect(known).toEqual(expect.arrayContaining(names));
  // Printed commands use the database of the service.
  const file = /^EnvironmentFile=(.*)$/m.exec(unit)?.[1];
  expect(settings).toMatch(new RegExp(`^DOVETAIL_COMMAND="systemd-run .*EnvironmentFile=${file} `, 'm'));
  expect(settings).toContain(`DATA_DIR=${/^WorkingDirectory=(.*)$/m.exec(unit)?.[1]}\n`);
  skip(!isInstalled('systemd-analyze'), 'systemd-analyze is not installed');
  // The threshold counts in tenths. Above it the command fails.
  await run('systemd-analyze', ['security', '--offline=true', '--threshold=20', 'ops/dovetail.service']);
});
