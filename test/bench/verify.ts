/** Checks that all contestants send equal responses, before any of them is measured. */

import { deepStrictEqual } from 'node:assert';
import { seeded } from '../support/random.ts';
import type { Running } from './contestants.ts';
import type { BenchDatabase } from './database.ts';
import { type BenchRequest, type Json, pickSubject, requestOf, type Workload } from './workloads.ts';

const samples = 5;

/** @throws if the responses of two contestants to a workload differ. Its cause shows where. */
export async function verify(
  workload: Workload,
  contestants: readonly Running[],
  database: BenchDatabase,
): Promise<void> {
  const random = seeded(7);
  for (let sample = 0; sample < samples; sample++) {
    const subject = pickSubject(random);
    let expected: { by: string; response: Json } | undefined;
    for (const { title, endpoint, server } of contestants) {
      // The response to an activation says whether it changed this, so all contestants need the same state.
      await database.query(`UPDATE "User" SET "scheduleType" = 'weekly' WHERE id = $1`, [subject.user]);
      const body = await ask(server.url, requestOf(workload, endpoint, subject));
      const given = endpoint === 'graphql' ? body.data && workload.toRest(body.data) : body.data;
      const response = normalised(given);
      if (response === null || response === undefined || body.errors) {
        throw new Error(
          `${title} has no data for "${workload.title}": ${JSON.stringify(body).slice(0, 500)}`,
        );
      }
      expected ??= { by: title, response };
      try {
        deepStrictEqual(response, expected.response);
      } catch (cause) {
        const by = `${title} differs from that of ${expected.by}`;
        throw new Error(`"${workload.title}": the response of ${by}`, { cause });
      }
    }
  }
}

async function ask(url: string, { path, ...init }: BenchRequest): Promise<Json> {
  const response = await fetch(url + path, init);
  return response.json();
}

/** Times are normalized, since the same time has several notations. All other values have to be equal. */
function normalised(value: Json): Json {
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value)) return new Date(value).toISOString();
  if (Array.isArray(value)) return value.map(normalised);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, normalised(entry)]));
}
