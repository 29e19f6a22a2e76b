import type { Table } from './table.ts';
export async function profile(_: unknown): Promise<Table[]> {
  return [];
}
