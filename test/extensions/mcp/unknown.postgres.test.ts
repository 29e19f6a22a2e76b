/** The results of tools have the published schemas also where little is known of the records, as in a mirror. */

import { expect, it } from 'vitest';
import { routes } from '../../../src/rest/routes.ts';
import { createAccount } from '../../support/accounts.ts';
import { openTestGateway } from '../../support/gateway.ts';
import { pathsFor } from '../../support/restResponses.ts';
import { connect } from '../../support/toolClient.ts';

it('a tool gives what is not known as its output schema has it', async () => {
  const gateway = await openTestGateway(undefined, { settings: { MCP: 'read' } });
  const { client: prisma, pool } = gateway.database;
  const alice = await createAccount(prisma, 'alice');
  const { rows } = await pool.query<{ statement: string }>(`
    SELECT format('UPDATE %I SET %s', table_name, string_agg(format('%I = NULL', column_name), ', ')) AS statement
    FROM information_schema.columns
    WHERE is_nullable = 'YES' AND column_name !~ 'Id$' AND table_name ~ '^(User|Dtt|Trainer|Lkbx|Lock|Ossm)'
    GROUP BY table_name`);
  expect(rows.length).toBeGreaterThan(5);
  // In any other database these values are always known.
  await pool.query(`INSERT INTO "Mirror" (source) VALUES ('https://example.com')`);
  for (const { statement } of rows) await pool.query(statement);

  const client = await connect(gateway, alice.token);
  // The client of the SDK validates results by the schemas that it has listed.
  await client.listTools();
  for (const route of routes.filter(({ isMutation, aliasOf }) => !isMutation && aliasOf === undefined)) {
    for (const path of pathsFor(route.path, alice)) {
      const given = route.path.endsWith('{id}') ? { id: Number(path.split('/').at(-1)) } : {};
      const result = await client.callTool({ name: route.name, arguments: given });
      expect([path, result.isError]).toEqual([path, undefined]);
    }
  }
  await client.close();
  await gateway.close();
});
