/**
 * What a mirror may not have of a record yet. The lists of an upstream leave out details, which are fetched record by
 * record, so a row may be here before they are: it says so in `detailsPending`, and whoever reads them has them fetched.
 */

import { listOf } from '../../database/reader/models.ts';
import { type Model, type PlannedQuery, Slot, type SlotValues } from '../../database/reader/query.ts';
import { detailsNotHere } from '../../errors.ts';
import type { Context, DetailedModel } from '../context.ts';
import type { ViewerRef } from './visible.ts';

/** What the list of sessions has of a segment: the one place that says so. */
export const segmentSummary = {
  id: true,
  type: true,
  passed: true,
  percentGrade: true,
  points: true,
} as const;

/** The same, and the key of its session, which is known anyway. */
const knownOfSegment = new Set([...Object.keys(segmentSummary), 'sessionId']);

/** Whether these columns of a model are, or may be, details of the record that the row is a part of. */
export function areDetails(model: string, columns: readonly string[]): boolean {
  // The list of templates leaves out the segments altogether.
  if (model === 'DttTemplateSegment') return true;
  return model === 'TrainerSegment' && columns.some((column) => !knownOfSegment.has(column));
}

/** Whether rows of the model have details, in the rows of a relation. */
export const isDetailed = (model: string): model is DetailedModel =>
  model === 'DttSession' || model === 'DttTemplate';

type Query = Pick<PlannedQuery, 'select' | 'take'>;

/**
 * Reads rows, and if details that are selected of any are pending has them fetched, and reads again.
 * @param query selects `detailsPending` wherever it selects details.
 * @param given the values of its slots.
 * @throws SERVICE_UNAVAILABLE when they cannot be had now: what is not known is never null.
 */
export async function readWithDetails<Row extends object>(
  context: Context,
  model: Model,
  query: Query,
  given: SlotValues,
  read: () => Promise<Row[]>,
): Promise<Row[]> {
  const rows = await read();
  const pending = findPending(model, query, given, rows);
  if (pending.size === 0) return rows;
  await Promise.all([...pending].map(([owner, ids]) => fetchDetails(context, owner, [...ids])));
  const again = await read();
  const missing = [...findPending(model, query, given, again).values()].flatMap((ids) => [...ids]);
  if (missing.length > 0) throw detailsNotHere(missing.length);
  return again;
}

/**
 * Has the details fetched of the records that these segments are a part of, or may be.
 * @param visible what the viewer can see.
 */
export async function fetchDetailsOfParts(
  context: Context,
  model: Model,
  ids: readonly number[],
  visible: { readonly [M in DetailedModel | 'DttTemplateSegment']: (viewer: ViewerRef) => object },
): Promise<void> {
  const { sql, viewer } = context;
  const idsOf = async (rows: Promise<object[]>) =>
    // What is selected below.
    ((await rows) as { readonly id: number }[]).map(({ id }) => id);
  if (model === 'TrainerSegment') {
    const isParent = { detailsPending: true, segments: { some: { id: { in: [...ids] } } } };
    const where = { AND: [visible.DttSession(viewer), isParent] };
    const pending = await idsOf(sql.findMany('DttSession', { select: { id: true }, where }));
    await fetchDetails(context, 'DttSession', pending);
  }
  if (model === 'DttTemplateSegment') {
    const isKnown = { id: { in: [...ids] }, template: { detailsPending: false } };
    const known = await idsOf(
      sql.findMany(model, {
        select: { id: true },
        where: { AND: [visible.DttTemplateSegment(viewer), isKnown] },
      }),
    );
    if (known.length === new Set(ids).size) return;
    // Any of them may have the others: the lists name no segment of a template.
    const where = { AND: [visible.DttTemplate(viewer), { detailsPending: true }] };
    const pending = await idsOf(sql.findMany('DttTemplate', { select: { id: true }, where }));
    await fetchDetails(context, 'DttTemplate', pending);
  }
}

async function fetchDetails(
  { upstream, viewer }: Context,
  model: DetailedModel,
  ids: readonly number[],
): Promise<void> {
  if (ids.length > 0) await upstream?.fetchDetails(viewer, model, ids);
}

/** The ids of the rows, at any depth, of which details are selected and pending. */
function findPending(
  model: Model,
  { select, take = 0 }: Query,
  given: SlotValues,
  rows: readonly object[],
  found = new Map<DetailedModel, Set<number>>(),
): Map<DetailedModel, Set<number>> {
  // Of a page one row more is read, which is not shown. What is selected of the rows is what they have.
  const size = take instanceof Slot ? Number(given[take.name]) : take;
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
        findPending(listOf(model, name).model, wanted, given, row[name] as readonly object[], found);
    }
  }
  return found;
}
