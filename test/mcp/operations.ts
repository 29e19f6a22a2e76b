/** A file of persisted operations, some of which are tools. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const operations = `
"Sessions with one trainer, newest first."
query SessionsOfTrainer("The trainer." $trainer: Int!, $first: Int! = 3, $where: DttSessionFilter) {
  dttDevice(databaseId: $trainer) {
    bubbleId
    sessions(first: $first, where: $where) { nodes { databaseId name createdAt } }
  }
}

"Activates a template."
mutation Activate($template: Int!) {
  activateTemplate(template: { databaseId: $template }) { template { databaseId } }
}

"Devices of every kind."
query Devices { devices { nodes { databaseId ... on OssmDevice { chip } } } }

"Not a tool, since another tool has this name."
query viewer { viewer { username } }

query WithoutDescription { viewer { username } }

"Not a tool, since it is a subscription."
subscription Follow { viewer { username } }
`;

/** Writes the file, which is removed after the tests. */
export async function operationsFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-operations-'));
  folders.push(folder);
  const path = join(folder, 'operations.graphql');
  await writeFile(path, operations);
  return path;
}

const folders: string[] = [];
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});
