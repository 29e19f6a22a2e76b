/** A database with a direct connection beside the one that may lead to a pooler. `pooler.postgres.test.ts` has a pooler. */

import { describe, expect, it, onTestFinished } from 'vitest';
import { openAt } from '../support/gateway.ts';
import { databaseWith } from '../support/setUp.ts';

const { database } = await databaseWith();
const { database: other } = await databaseWith();
const url = database.pool.options.connectionString ?? '';

const open = (at: string, direct: string) => openAt(at, undefined, direct);

describe('a direct connection beside a pooler in transaction mode', () => {
  it('applies migrations, with a role that may differ from the one of the pooler', async () => {
    const name = new URL(url).pathname.slice(1);
    const role = `reader_${process.pid}`;
    await database.pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'postgres'`);
    await database.pool.query(`GRANT CONNECT ON DATABASE ${name} TO ${role}`);
    onTestFinished(async () => void (await database.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)));
    await database.pool.query(
      `DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO ${role};
       ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO ${role}`,
    );
    const limited = new URL(url);
    limited.username = role;
    await expect(openAt(limited.href)).rejects.toThrow(/may not create tables in the schema/);
    const opened = await open(limited.href, `${url}?application_name=beside_${role}`);
    onTestFinished(opened.close);
    const { rows } = await opened.pool.query<{ role: string }>('SELECT current_user AS role');
    expect(rows).toEqual([{ role }]);
    const besides = `SELECT FROM pg_stat_activity WHERE application_name = 'beside_${role}'`;
    await expect.poll(async () => (await database.pool.query(besides)).rowCount).toBe(0);
  });

  it('that leads to another database is rejected', async () => {
    const elsewhere = other.pool.options.connectionString ?? '';
    const [here, there] = [url, elsewhere].map((each) => new URL(each).pathname.slice(1));
    const where = `leads to the database "${there}", and DATABASE_URL to "${here}"`;
    await expect(open(url, elsewhere)).rejects.toThrow(
      `DATABASE_DIRECT_URL is "${elsewhere.replace(':postgres@', ':***@')}", but ${where}`,
    );
  });

  it('that leads to another schema is rejected', async () => {
    await database.pool.query('CREATE SCHEMA beside');
    await expect(open(url, `${url}?options=-c%20search_path%3Dbeside`)).rejects.toThrow(
      'but leads to the schema "beside", and DATABASE_URL to "public"',
    );
  });

  it('that fails is reported with DATABASE_DIRECT_URL', async () => {
    await expect(open(url, 'postgresql://me:secret@127.0.0.1:1/app')).rejects.toThrow(
      'DATABASE_DIRECT_URL is "postgresql://me:***@127.0.0.1:1/app", but cannot be used: connect ECONNREFUSED 127.0.0.1:1',
    );
  });
});
