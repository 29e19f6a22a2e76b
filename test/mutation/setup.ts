/**
 * Runs in a worker before each file of tests: switches the mutant on, and reports which mutants the file reached. A worker loads the
 * sources for its first file only, so before that one, all are loaded here, and what that reaches is reported apart.
 */

import { writeFileSync } from 'node:fs';
import { afterAll, beforeEach, inject, onTestFailed } from 'vitest';
import { getCurrentSuite } from 'vitest/suite';
import { workerFile } from './output.ts';

/** What the instrumented sources read and write. */
interface Switches {
  activeMutant?: string | undefined;
  hitCount: number;
  hitLimit: number;
  /** Whether a test failed in this worker. */
  hasFailed?: boolean;
  /** The counters of the mutants by their id. The instrumenter distinguishes tests, which is not used here. */
  mutantCoverage: { static: Record<string, number>; perTest: Record<string, never> };
}

declare global {
  var __stryker__: Switches | undefined;
}

declare module 'vitest' {
  export interface ProvidedContext {
    /** Whether the run is about which mutants are reached. */
    isMeasuring: boolean | undefined;
  }
  export interface TaskMeta {
    /** The ids of the mutants that the file reached. */
    reached?: string[];
    /** Those that are reached while the sources load, of the first file of a worker. */
    loaded?: string[];
  }
}

const isFirst = globalThis.__stryker__ === undefined;
// The sources keep the objects that they find first.
globalThis.__stryker__ ??= { hitCount: 0, hitLimit: 0, mutantCoverage: { static: {}, perTest: {} } };
const switches = globalThis.__stryker__;
const { file } = getCurrentSuite();
// mutate.ts puts the mutant into the name of the file.
const run = new URLSearchParams(file?.filepath.split('?')[1]);
switches.activeMutant = run.get('mutant') || undefined;
switches.hitCount = 0;
// A short endless loop reaches this, and throws. No test comes near it.
switches.hitLimit = 500_000;
// mutate.ts ends a process that stays at a file for too long.
writeFileSync(workerFile, String(process.pid));
switches.mutantCoverage.static = {};

// migration.ts puts the database there of which the file is to take copies.
const template = run.get('template');
if (template !== null) Object.assign(inject('engine'), { template });

/** All sources but the one that runs when it is loaded. */
const sources = import.meta.glob(['../../src/**/*.ts', '!**/generated/**', '!**/cli/program.ts']);
if (isFirst && inject('isMeasuring')) for (const load of Object.values(sources)) await load();
const loaded = Object.keys(switches.mutantCoverage.static);
switches.mutantCoverage.static = {};

// Hooks run in the reverse order: this one is the last.
// biome-ignore lint/correctness/noEmptyPattern: Vitest asks for this form of the first argument.
afterAll(({}, suite) => {
  if (isFirst) suite.meta.loaded = loaded;
  suite.meta.reached = Object.keys(switches.mutantCoverage.static);
});

let hasFailed = false;
beforeEach(({ skip }) => {
  // One failure is enough, and where nothing failed before, there is nothing to control.
  if (hasFailed || (run.has('control') && !switches.hasFailed)) skip();
  onTestFailed(() => {
    hasFailed = true;
    switches.hasFailed = true;
  });
});
