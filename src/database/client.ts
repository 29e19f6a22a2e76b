/**
 * Prisma's client. Import this module when the client is needed, and not before: a gateway does so in `clients.ts`. Most gateways never
 * need it, and it takes 20 MB, and its engine, which the first query loads, another 50.
 */

import { PrismaPg } from '@prisma/adapter-pg';
import type pg from 'pg';
import { PrismaClient } from './generated/prisma/client.ts';

/** A client on the connections of the pool. The caller still has to end the pool. */
export function openClient(pool: pg.Pool): PrismaClient {
  const adapter = {
    provider: 'postgres' as const,
    adapterName: '@prisma/adapter-pg',
    /** Prisma writes a schema before the name of every table, so it needs that of the connections. */
    async connect() {
      const { rows } = await pool.query<{ schema: string | null }>('SELECT current_schema() AS schema');
      return new PrismaPg(pool, { schema: rows[0]?.schema ?? 'public' }).connect();
    },
  };
  return new PrismaClient({ adapter });
}
