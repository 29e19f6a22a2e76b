/** Which rights the role of a gateway lacks, of those that docs/deployment.md has. */

import type pg from 'pg';
import type { Diagnosis } from '../errors.ts';
import { tables } from './models.ts';

export interface MissingRight {
  readonly table: string;
  /** As GRANT takes it. */
  readonly right: string;
}

const readable = [...tables, '_prisma_migrations'];

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

/**
 * The tables with row-level security that applies to the role, and no policy that shows it all rows: it finds nothing in them
 * and is told of no error.
 */
export async function findHiddenTables(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ table: string }>(
    `SELECT name AS table
     FROM unnest($1::text[]) AS name, to_regclass(quote_ident(name)) AS relation
     WHERE row_security_active(relation) AND NOT EXISTS (
       SELECT FROM pg_policy
       WHERE polrelid = relation AND polpermissive AND polcmd IN ('r', '*') AND pg_get_expr(polqual, polrelid) = 'true'
         AND EXISTS (SELECT FROM unnest(polroles) AS role WHERE CASE role WHEN 0 THEN true ELSE pg_has_role(role, 'USAGE') END))
     ORDER BY name`,
    [readable],
  );
  return rows.map(({ table }) => table);
}

/** What is said where there are tables in a schema that the role may not use: to it they are as good as missing. */
export async function findUsageProblem(client: pg.ClientBase): Promise<Diagnosis | undefined> {
  const { rows } = await client.query<{ role: string; path: string }>(
    `SELECT current_user AS role, current_setting('search_path') AS path WHERE current_schema() IS NULL`,
  );
  const [found] = rows;
  if (!found) return undefined;
  const schema = firstOf(found.path, found.role);
  const { hasTables, quoted, grantee } = await lookUp(client, schema, found.role);
  if (!hasTables) return undefined;
  return {
    says: `the role ${JSON.stringify(found.role)} may not use the schema ${JSON.stringify(schema)}, which has the tables`,
    advice: `As the owner of the schema: GRANT USAGE ON SCHEMA ${quoted} TO ${grantee};`,
  };
}

/** What is said where the tables of a database without any cannot be made; undefined where they can. */
export async function findSchemaProblem(client: pg.ClientBase): Promise<Diagnosis | undefined> {
  const { rows } = await client.query<{ role: string; schema: string | null; path: string; may: boolean }>(
    `SELECT current_user AS role, current_schema() AS schema, current_setting('search_path') AS path,
       coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may`,
  );
  const [found] = rows;
  if (!found || found.may) return undefined;
  const { role, path } = found;
  const schema = found.schema ?? firstOf(path, role);
  const { exists, quoted, grantee } = await lookUp(client, schema, role);
  if (!exists)
    return {
      says: `its search_path is ${path}, and there is no schema ${JSON.stringify(schema)} to create tables in`,
      advice: `Make it: CREATE SCHEMA ${quoted}; or correct the search_path, in DATABASE_URL or of the role.`,
    };
  // One that may not be used is passed over as if it were not there.
  const right = found.schema === null ? 'USAGE, CREATE' : 'CREATE';
  return {
    says: `the role ${JSON.stringify(role)} may not create tables in the schema ${JSON.stringify(schema)}`,
    advice: `Run \`npx dovetail migrate\` with a DATABASE_URL of the role that owns the database, or grant this one the right: GRANT ${right} ON SCHEMA ${quoted} TO ${grantee};`,
  };
}

/** The schema that a search_path means tables to be in: the first, but for the role's own, which most often is not there. */
function firstOf(path: string, role: string): string {
  const names = path.split(',').map((each) => {
    const name = each.trim();
    return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase();
  });
  const own = names.includes('$user') ? role : 'public';
  return names.find((name) => name !== '$user' && name !== '') ?? own;
}

async function lookUp(client: pg.ClientBase, schema: string, role: string) {
  const { rows } = await client.query<{
    exists: boolean;
    hasTables: boolean;
    quoted: string;
    grantee: string;
  }>(
    `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1) AS exists,
       EXISTS (SELECT FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace
               WHERE nspname = $1 AND relname = '_prisma_migrations') AS "hasTables",
       quote_ident($1) AS quoted, quote_ident($2) AS grantee`,
    [schema, role],
  );
  return rows[0] ?? { exists: true, hasTables: false, quoted: schema, grantee: role };
}
