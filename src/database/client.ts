/**
 * Prisma's client, for commands, whose time is their own. Nothing that a request needs may import this: the client
 * takes 20 MB, and its engine, which the first query loads, another 50.
 */

import { PrismaPg } from '@prisma/adapter-pg';
import type pg from 'pg';
import { PrismaClient } from '../generated/prisma/client.ts';

/** A client on the connections of the pool, which stays the caller's to end. */
export function openClient(pool: pg.Pool): PrismaClient {
  return new PrismaClient({ adapter: new PrismaPg(pool) });
}
