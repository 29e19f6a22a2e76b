/**
 * A context without the gateway's shortcuts: each row is read with all of its columns whatever was selected, and
 * each place in the operation reads for itself. What a selection leaves out, or two places share, then shows.
 */

import DataLoader from 'dataloader';
import type { Viewer } from '../../src/auth/viewer.ts';
import { getDatamodel } from '../../src/database/generated/pothos.ts';
import type { Sql } from '../../src/database/reader/sql.ts';
import type { Context } from '../../src/schema/context.ts';

export function plainContext(sql: Sql, viewer: Viewer): Context {
  return {
    viewer,
    sql: {
      ...sql,
      findMany: (model, query, given) =>
        sql.findMany(model, { ...query, select: widened(model, { ...query.select }) } as typeof query, given),
    },
    loaders: {
      at: (_place, createBatch) => {
        const find = createBatch();
        return new DataLoader(async (ids) => {
          const found = await find(ids);
          return ids.map((id) => found.get(id));
        });
      },
      once: (_name, read) => read(),
      clear: () => {},
    },
    upstream: undefined,
  };
}

interface Field {
  readonly name: string;
  readonly type: string;
  readonly kind: string;
}

// What Prisma generates has this shape, and every model.
const models = getDatamodel().datamodel.models as Record<string, { readonly fields: readonly Field[] }>;

function widened(model: string, select: Record<string, unknown>): Record<string, unknown> {
  const wide: Record<string, unknown> = { ...select };
  for (const { name, type, kind } of models[model]?.fields ?? []) {
    const below = select[name];
    // A `select` is an object, whatever its type says here.
    if (kind !== 'object') wide[name] = true;
    else if (typeof below === 'object' && below !== null && 'select' in below)
      wide[name] = { ...below, select: widened(type, { ...(below.select as Record<string, unknown>) }) };
  }
  return wide;
}
