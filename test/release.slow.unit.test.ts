/** The steps of a release, as its workflow calls them. Only what changes something elsewhere is left out. */

import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { readPage } from './docs/markdown.ts';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const workflow = readFileSync('.github/workflows/release.yml', 'utf8');
/** Whether a program runs here. */
const runs = (program: string, ...args: string[]) => spawnSync(program, args).status === 0;

/** Runs a step as a workflow of this repository would, whatever repository that is. */
async function run(command: string, tag = `v${version}`): Promise<string> {
  const env = {
    ...process.env,
    GITHUB_SERVER_URL: 'https://forge.example',
    GITHUB_REPOSITORY: 'Someone/dovetail',
    GITHUB_REF_NAME: tag,
  };
  const [program = '', ...args] = command.split(' ');
  const { stdout } = await promisify(execFile)(program, args, { env, maxBuffer: 10_000_000 });
  return stdout;
}

it('the workflow only prepares, and calls the scripts', () => {
  const commands = [...workflow.matchAll(/^ +- run: (.*)$/gm)].map(([, command]) => command);
  expect(commands).toEqual(['.ci/release check', '.ci/run', '.ci/release publish', '.ci/image --push']);
});

it('a tag has to be the version of package.json', async () => {
  await run('.ci/release check');
  await expect(run('.ci/release check', 'v0.9.0')).rejects.toThrow(
    `The tag is v0.9.0, but package.json has the version ${version}.`,
  );
});

it('the package is made with its SBOM and all licences, starts in an empty folder, names the repository of the workflow, and may be published', async () => {
  const output = await run('.ci/release publish --dry-run');
  expect(output).toContain('The gateway stopped with exit code 0.');
  const [, listed] = /^(\d+) packages in its SBOM, \d+ with the text of their licence$/m.exec(output) ?? [];
  expect(Number(listed)).toBeGreaterThan(100);
  expect(output).toContain('its repository: git+https://forge.example/Someone/dovetail.git\n');
  expect(output).toContain(`+ dovetail-gateway@${version}\n`);
  const tarball = `dist/release/dovetail-gateway-${version}.tgz`;
  expect(output).toContain(
    `gh release create v${version} --title v${version} --notes-file dist/release/notes.md ${tarball}\n`,
  );
  const notes = readFileSync('dist/release/notes.md', 'utf8').trim();
  expect(readPage('CHANGELOG.md')).toContain(notes);
  expect(notes).not.toMatch(/^## /m);
}, 300_000);

it('the image is built', async ({ skip }) => {
  const canBuild = runs('buildah', '--version') || runs('docker', 'info');
  skip(!canBuild, 'there is neither Buildah nor a Docker daemon');
  const failure: unknown = await run('.ci/image').catch((error) => error);
  skip(/registry/.test(String(failure)), 'the registries of the base images cannot be reached');
  expect(failure).not.toBeInstanceOf(Error);
}, 600_000);
