/**
 * Details of records that a mirror may not have yet. The lists of an upstream leave them out, and the mirror fetches them record by
 * record, so a row may exist before its details. Then its column `detailsPending` is true, and a read of the details fetches
 * them first.
 */

import {
  listOf,
  type ModelName,
  type RecordType,
  Slot,
  type SlotValues,
  visibleTo,
} from '../../database/models.ts';
import type { SelectQuery } from '../../database/reader/statement.ts';
import { detailsNotHere } from '../../errors.ts';
import type { Context, DetailedModel } from '../context.ts';

/** The columns of a segment that the upstream's list of sessions includes. */
export const segmentSummary = {
  id: true,
  type: true,
  passed: true,
  percentGrade: true,
  points: true,
} as const;

/** The columns of a segment that are known before its details: the key of its session is known as well. */
const summaryColumns = new Set([...Object.keys(segmentSummary), 'sessionId']);

/** Whether some of these columns of a model are details of the record that the row is a part of. */
export function areDetails(model: string, columns: readonly string[]): boolean {
  // The upstream's list of templates leaves out their segments altogether.
  if (model === 'DttTemplateSegment') return true;
  return model === 'TrainerSegment' && columns.some((column) => !summaryColumns.has(column));
}

/** Whether records of the model have details, which are rows of a relation. */
export const isDetailed = (model: string): model is DetailedModel =>
  model === 'DttSession' || model === 'DttTemplate';

/**
 * Reads rows. If details that the query selects are pending, fetches them and reads the rows again.
 * @param query must select `detailsPending` wherever it selects details.
 * @param slotValues the values of the query's slots.
 * @throws SERVICE_UNAVAILABLE if the details cannot be fetched now: unknown values must never appear as null.
 */
export async function readWithDetails<Row extends object>(
  context: Context,
  model: ModelName,
  query: Pick<SelectQuery, 'select' | 'take'>,
  slotValues: SlotValues,
  read: () => Promise<Row[]>,
): Promise<Row[]> {
  const rows = await read();
  const pending = findPending(model, query, slotValues, rows);
  if (pending.size === 0) return rows;
  await Promise.all([...pending].map(([owner, ids]) => fetchDetails(context, owner, [...ids])));
  const again = await read();
  const missing = [...findPending(model, query, slotValues, again).values()].flatMap((ids) => [...ids]);
  if (missing.length > 0) throw detailsNotHere(missing.length);
  return again;
}

/** Fetches the pending details of every record to which one of these segments may belong. */
export async function fetchDetailsOfParts(
  context: Context,
  model: RecordType,
  ids: readonly number[],
): Promise<void> {
  const { sql, viewer } = context;
  const idsOf = async (type: RecordType, condition: object) => {
    const where = { AND: [visibleTo(viewer, type), condition] };
    // The query selects the id.
    const rows = (await sql.findMany(type, { select: { id: true }, where })) as { readonly id: number }[];
    return rows.map(({ id }) => id);
  };
  const fetchPending = async (owner: DetailedModel, condition: object) =>
    fetchDetails(context, owner, await idsOf(owner, { detailsPending: true, ...condition }));
  if (model === 'TrainerSegment')
    await fetchPending('DttSession', { segments: { some: { id: { in: [...ids] } } } });
  if (model !== 'DttTemplateSegment') return;
  const known = await idsOf(model, { id: { in: [...ids] }, template: { detailsPending: false } });
  // Any pending template may have the unknown segments: the upstream's lists name no segments.
  if (known.length < new Set(ids).size) await fetchPending('DttTemplate', {});
}

async function fetchDetails(
  { upstream, viewer }: Context,
  model: DetailedModel,
  ids: readonly number[],
): Promise<void> {
  if (ids.length > 0) await upstream?.fetchDetails(viewer, model, ids);
}

/** Finds the ids of rows, at any depth, whose details are selected and pending. */
function findPending(
  model: ModelName,
  { select, take = 0 }: Pick<SelectQuery, 'select' | 'take'>,
  slotValues: SlotValues,
  rows: readonly object[],
  found = new Map<DetailedModel, Set<number>>(),
): Map<DetailedModel, Set<number>> {
  // A page is read with one more row, which is not shown. The rows have the columns that the query selects.
  const size = take instanceof Slot ? Number(slotValues[take.name]) : take;
  const shown = (size > 1 ? rows.slice(0, size - 1) : rows) as readonly Record<string, unknown>[];
  for (const [name, wanted] of Object.entries(select)) {
    if (name === 'detailsPending' && isDetailed(model)) {
      for (const { id, detailsPending } of shown) {
        if (detailsPending !== true) continue;
        const ids = found.get(model) ?? new Set();
        found.set(model, ids.add(Number(id)));
      }
    } else if (typeof wanted === 'object' && name !== '_count') {
      for (const row of shown)
        findPending(listOf(model, name).model, wanted, slotValues, row[name] as readonly object[], found);
    }
  }
  return found;
}
