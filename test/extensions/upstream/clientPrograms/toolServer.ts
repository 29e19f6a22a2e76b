/**
 * A tool server for assistants: each tool is one request. The assistant reads every list and each record by its id, activates
 * a training program and changes one, and sends requests that are invalid.
 */

import { type Client, listOf, recordOf } from './client.ts';

/** The lists. The paths of their records begin with them. */
const lists =
  '/dtt /dtt/templates /dtt/sessions /lkbx /lkbx/templates /lkbx/sessions /lkbx/session /ossm'.split(' ');

/** Reads every list, page by page, and each record of it. */
export async function listAll(client: Client): Promise<void> {
  const me = recordOf(await client.get('/users/me'));
  await client.get(`/users/${me?.id}`);
  for (const list of lists) {
    for (let offset = 0; ; offset += 5) {
      const records = listOf(await client.get(`${list}?limit=5&offset=${offset}`));
      for (const { id } of records) await client.get(`${list}/${id}`);
      if (records.length < 5) break;
    }
  }
  for (const path of ['/dtt/templates/active', '/lkbx/templates/active', '/lkbx/session/current'])
    await client.get(path);
}

/** Activates the oldest program of its own, changes it, and reads it again after each write. */
export async function changeProgram(client: Client): Promise<void> {
  const me = recordOf(await client.get('/users/me'))?.id;
  const programs = listOf(await client.get('/dtt/templates?limit=100'));
  const own = programs.filter(({ ownerId }) => ownerId === me);
  const imported = programs.find(({ ownerId }) => ownerId !== me);
  const program = `/dtt/templates/${own.at(-1)?.id}`;
  const read = async () => {
    for (const path of [program, '/dtt/templates/active', '/dtt/templates']) await client.get(path);
  };

  await client.send('POST', `/dtt/templates/${own.at(0)?.id}`, { isActive: true });
  await read();
  await client.send('POST', program, { isActive: true });
  await read();
  await client.send('PATCH', program, { name: 'Changed by an assistant', targetDepth: 33, message: null });
  await read();
  const segment = { type: 'endurance', duration: 300, speed: 50, repeat: 2 };
  await client.send('PATCH', program, { Segment: [segment, { ...segment, type: 'bounce' }] });
  await read();
  await client.send('POST', program, { isActive: false });
  await client.send('PATCH', program, { name: 'x' });
  await client.send('PATCH', program, {});
  if (imported) {
    await client.send('POST', `/dtt/templates/${imported.id}`, { isActive: true });
    await client.send('PATCH', `/dtt/templates/${imported.id}`, { name: 'Not mine' });
  }
}

/** Requests records and paths that do not exist, and sends invalid parameters, as an assistant does by mistake. */
export async function sendInvalidRequests(client: Client): Promise<void> {
  for (const path of [
    '/dtt/999999',
    '/dtt/templates/999999',
    '/lkbx/sessions/999999',
    '/users/2',
    '/dtt/x',
    '/dtt/0',
    '/dtt/sessions?limit=101',
    '/dtt/sessions?offset=-1',
    '/lkbx/settings',
    '/nowhere',
  ])
    await client.get(path);
  await client.send('POST', '/dtt/templates/999999', { isActive: true });
  await client.send('PATCH', '/dtt/templates/999999', { name: 'Nothing' });
  await client.send('POST', '/nowhere', {});
}
