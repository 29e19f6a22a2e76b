/**
 * Reads of records whose details may be missing: a row may be here before its details. Then its column `detailsPending` is true, and a
 * read that selects details fetches them first. Unknown values never appear as null.
 */

import type { Viewer } from '../../../auth/viewer.ts';
import { listRelation } from '../../../database/dataModel.ts';
import {
  isRecordType,
  type ModelName,
  type RecordType,
  Slot,
  type SlotValues,
  visibleTo,
} from '../../../database/models.ts';
import type { Sql } from '../../../database/reader/sql.ts';
import type { SelectQuery } from '../../../database/reader/statement.ts';
import type { RunInTurn } from '../../../database/turns.ts';
import { type DetailedModel, detailsNotHere, type FetchDetails } from './details.ts';
import { segmentSummary } from './pending.ts';

type Selection = Pick<SelectQuery, 'select' | 'take'>;

/** The models whose rows are details of records. */
export const detailModels = ['DttTemplateSegment', 'TrainerSegment'] as const satisfies readonly ModelName[];

/** The columns of a segment that are known before its details: the key of its session is known as well. */
const summaryColumns = new Set([...Object.keys(segmentSummary), 'sessionId']);

/** Whether some of these columns of a model are details of the record that the row is a part of. */
function areDetails(model: ModelName, columns: readonly string[]): boolean {
  // A list of templates leaves out their segments altogether.
  if (model === 'DttTemplateSegment') return true;
  return model === 'TrainerSegment' && columns.some((column) => !summaryColumns.has(column));
}

const isDetailed = (model: ModelName): model is DetailedModel =>
  model === 'DttSession' || model === 'DttTemplate';

/** Whether what is selected by a name are rows, and not a column or counts. */
const isRows = (name: string, wanted: unknown): wanted is Selection =>
  typeof wanted === 'object' && wanted !== null && name !== '_count';

/** The selection of a model, with `detailsPending` wherever it has details. */
function withPending(model: ModelName, select: SelectQuery['select']): SelectQuery['select'] {
  const all: Record<string, unknown> = { ...select };
  for (const [name, wanted] of Object.entries(select)) {
    if (!isRows(name, wanted)) continue;
    const below = listRelation(model, name).model;
    all[name] = { ...wanted, select: withPending(below, wanted.select) };
    if (isDetailed(model) && areDetails(below, Object.keys(wanted.select))) all.detailsPending = true;
  }
  return all;
}

/** The queries as they are sent, by those of the schema: a statement is written once for each object. */
const sent = new WeakMap<SelectQuery, SelectQuery>();

function queryFor(model: ModelName, query: SelectQuery): SelectQuery {
  const known = sent.get(query) ?? { ...query, select: withPending(model, query.select) };
  sent.set(query, known);
  return known;
}

type Pending = Map<DetailedModel, Set<number>>;

/** Finds the ids of rows, at any depth, whose details are selected and pending. */
function findPending(
  model: ModelName,
  { select, take = 0 }: Selection,
  given: SlotValues,
  rows: readonly object[],
  found: Pending = new Map(),
): Pending {
  // A page is read with one more row, which is not shown. The rows have the columns that the query selects.
  const size = take instanceof Slot ? Number(given[take.name]) : take;
  const shown = (size > 1 ? rows.slice(0, size - 1) : rows) as readonly Record<string, unknown>[];
  for (const [name, wanted] of Object.entries(select)) {
    if (name === 'detailsPending' && isDetailed(model)) {
      const ids = shown.filter((row) => row.detailsPending === true).map(({ id }) => Number(id));
      if (ids.length > 0) found.set(model, new Set([...(found.get(model) ?? []), ...ids]));
    } else if (isRows(name, wanted)) {
      const below = listRelation(model, name).model;
      for (const row of shown) findPending(below, wanted, given, row[name] as readonly object[], found);
    }
  }
  return found;
}

/**
 * The SQL interface of a viewer's operation, with reads that fetch pending details.
 * @param watch runs what is fetched.
 */
export function completeReads(viewer: Viewer, sql: Sql, watch: RunInTurn, fetchDetails: FetchDetails): Sql {
  async function fetch(model: DetailedModel, ids: readonly number[]): Promise<void> {
    if (ids.length > 0) await watch(() => fetchDetails(viewer, model, ids));
  }

  /** Fetches the pending details of every record to which one of these segments may belong: only the row of the record says it. */
  async function fetchAround(model: RecordType, ids: readonly number[]): Promise<void> {
    // Any pending template may have segments that are unknown here.
    const [owner, condition]: [DetailedModel, object] =
      model === 'TrainerSegment'
        ? ['DttSession', { segments: { some: { id: { in: [...ids] } } } }]
        : ['DttTemplate', {}];
    const where = { AND: [visibleTo(viewer, owner), { detailsPending: true }, condition] };
    // The query selects the id.
    const rows = (await sql.findMany(owner, { select: { id: true }, where })) as { readonly id: number }[];
    await fetch(
      owner,
      rows.map(({ id }) => id),
    );
  }

  return {
    ...sql,
    async findMany(model, query, given) {
      const { ids } = given ?? {};
      if (Array.isArray(ids) && isRecordType(model) && areDetails(model, Object.keys(query.select)))
        await fetchAround(model, ids);
      const asked = queryFor(model, query);
      const read = () => sql.findMany(model, asked, given);
      const rows = await read();
      const pending = findPending(model, asked, given ?? {}, rows);
      if (pending.size === 0) return rows;
      await Promise.all([...pending].map(([owner, ids]) => fetch(owner, [...ids])));
      const again = await read();
      const missing = [...findPending(model, asked, given ?? {}, again).values()];
      if (missing.length > 0) throw detailsNotHere(missing.reduce((sum, { size }) => sum + size, 0));
      return again;
    },
    /** Without rows whose details are pending: the caller reads them again. */
    async write(statement, model, query, given) {
      const asked = queryFor(model, query);
      const [written, rows] = await sql.write(statement, model, asked, given);
      return [written as never, findPending(model, asked, given ?? {}, rows).size > 0 ? [] : rows];
    },
  };
}
