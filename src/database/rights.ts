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

/** What is said of a role that may not make the tables of a database without any; undefined of one that may. */
export async function lackOfSchema(
  client: pg.ClientBase,
): Promise<{ says: string; advice: string } | undefined> {
  const { rows } = await client.query<{ role: string; schema: string | null; grant: string; may: boolean }>(
    `SELECT current_user AS role, current_schema() AS schema,
       format('GRANT CREATE ON SCHEMA %I TO %I', coalesce(current_schema(), 'public'), current_user) AS grant,
       coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may`,
  );
  const [found] = rows;
  if (!found || found.may) return undefined;
  const { role, schema, grant } = found;
  const place = schema === null ? '' : ` in the schema ${JSON.stringify(schema)}`;
  return {
    says: `the role ${JSON.stringify(role)} may not create tables${place}`,
    advice: `Run \`npx dovetail migrate\` with a DATABASE_URL of the role that owns the database, or grant this one the right: ${grant};`,
  };
}
