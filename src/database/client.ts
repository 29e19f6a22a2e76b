/**
 * Prisma's client, for commands and tests. A gateway writes and reads without it, and nothing
 * that it needs may import this: the client takes 20 MB, and its engine, which the first query loads, another 50.
 */

import { PrismaPg } from '@prisma/adapter-pg';
import type pg from 'pg';
import { PrismaClient } from './generated/prisma/client.ts';

/** A client on the connections of the pool, which stays the caller's to end. */
export function openClient(pool: pg.Pool): PrismaClient {
  const adapter = {
    provider: 'postgres' as const,
    adapterName: '@prisma/adapter-pg',
    /** Prisma writes the schema before the name of every table: it has to be told the one that the connections use. */
    async connect() {
      const { rows } = await pool.query<{ schema: string | null }>('SELECT current_schema() AS schema');
      return new PrismaPg(pool, { schema: rows[0]?.schema ?? 'public' }).connect();
    },
  };
  return new PrismaClient({ adapter });
}
