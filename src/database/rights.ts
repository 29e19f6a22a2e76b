/** Which rights the role of a gateway lacks, of those that docs/deployment.md has. */

import type pg from 'pg';
import { tables } from './announcements.ts';

export interface MissingRight {
  readonly table: string;
  /** As GRANT takes it. */
  readonly right: string;
}

const readable = [...tables, 'Mirror', 'MirroredAccount', 'RateLimit', '_prisma_migrations'];

/** The rights that the role of the connection lacks on tables that there are. */
export async function findMissingRights(client: pg.ClientBase): Promise<MissingRight[]> {
  const { rows } = await client.query<MissingRight>(
    `SELECT name AS table, needed AS right
     FROM (
       SELECT name, 'SELECT' AS needed FROM unnest($1::text[]) AS name
       UNION ALL VALUES ('User', 'UPDATE'), ('ApiToken', 'UPDATE'), ('DttTemplate', 'UPDATE (id)'),
         ('RateLimit', 'INSERT'), ('RateLimit', 'UPDATE'), ('RateLimit', 'DELETE')
     ) AS rights, to_regclass(quote_ident(name)) AS relation
     WHERE NOT CASE needed WHEN 'UPDATE (id)' THEN has_column_privilege(relation, 'id', 'UPDATE')
       ELSE has_table_privilege(relation, needed) END
     ORDER BY needed, name`,
    [readable],
  );
  return rows;
}
