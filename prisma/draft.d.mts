import type pg from 'pg';

/** Described where it is written. */
export function draftMigration(connection: pg.ClientConfig, from: string, to: string): Promise<string>;
