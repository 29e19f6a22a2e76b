/** Which rows a list has for the viewer. */

import { type PlannedQuery, Slot, type SlotValues } from '../../database/reader/query.ts';
import type { Context } from '../context.ts';
import { currentViewer, type Model, owned, visible } from './visible.ts';

/** The rows that the viewer sees in a list. */
interface VisibleRows {
  /** Tells the conditions of a list from each other. */
  readonly variant: 'own' | 'own and imported';
  /** The condition of these rows, to count them by. */
  readonly where: object;
  /** The part of a query that reads these rows in order. */
  readonly query: Pick<PlannedQuery, 'where' | 'anyOf'>;
  /** The values of the slots. */
  readonly given?: SlotValues;
}

const imports = new Slot('imports');

const importsOfViewer = {
  where: { userId: currentViewer.id, importedAt: { not: null } },
  select: { templateId: true },
} as const;

/** The viewer's own templates, and the imported ones. */
const templates = [owned(currentViewer), { id: { in: imports } }];

/**
 * The rows that `visible` shows, for a list. Of templates it finds the same rows in another way: to find the newest ones in
 * a library, PostgreSQL would read all of them. Instead the ids of the imported templates, of which there are few, are read
 * first. The list then reads the viewer's own templates off an index, in order, and merges the imported ones.
 */
export function visibleInList(model: Model, context: Context): VisibleRows | Promise<VisibleRows> {
  return model === 'DttTemplate' ? visibleTemplates(context) : ownRows(visible[model](currentViewer));
}

async function visibleTemplates({ sql, viewer, loaders }: Context): Promise<VisibleRows> {
  // Rows have what is selected.
  const found = (await loaders.once('imports of the viewer', () =>
    sql.findMany('DttLibraryEntry', importsOfViewer, { viewer: viewer.id }),
  )) as { templateId: number }[];
  if (found.length === 0) return ownRows(owned(currentViewer));
  return {
    variant: 'own and imported',
    where: { OR: templates },
    query: { anyOf: templates },
    given: { imports: found.map(({ templateId }) => templateId) },
  };
}

const ownRows = (where: object): VisibleRows => ({ variant: 'own', where, query: { where } });
