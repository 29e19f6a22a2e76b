/** Which rows of a list there are for the viewer. */

import { Slot, type SlotValues } from '../../database/reader/query.ts';
import type { Context } from '../context.ts';
import { currentViewer, type Model, owned, visible } from './visible.ts';

/** Which rows of a list there are for whoever asks. */
interface Seen {
  /** Tells apart the conditions that a list may have. */
  readonly variant: 'own' | 'own and imported';
  readonly where: object;
  readonly given?: SlotValues;
}

const imports = new Slot('imports');

const importsOfViewer = {
  where: { userId: currentViewer.id, importedAt: { not: null } },
  select: { templateId: true },
} as const;

/**
 * The same rows as `visible` shows, for a list. Of a library PostgreSQL would read all templates to find the newest. Those
 * of an owner it reads in order, beside the few imported ones, whose ids are read first.
 */
export function visibleInList(model: Model, context: Context): Seen | Promise<Seen> {
  return model === 'DttTemplate'
    ? visibleTemplates(context)
    : { variant: 'own', where: visible[model](currentViewer) };
}

async function visibleTemplates({ sql, viewer, loaders }: Context): Promise<Seen> {
  // Rows have what is selected.
  const found = (await loaders.once('imports of the viewer', () =>
    sql.findMany('DttLibraryEntry', importsOfViewer, { viewer: viewer.id }),
  )) as { templateId: number }[];
  if (found.length === 0) return { variant: 'own', where: owned(currentViewer) };
  return {
    variant: 'own and imported',
    where: { OR: [owned(currentViewer), { id: { in: imports } }] },
    given: { imports: found.map(({ templateId }) => templateId) },
  };
}
