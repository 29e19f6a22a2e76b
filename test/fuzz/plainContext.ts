/**
 * A context without the gateway's optimizations: each row is read with all of its columns, whatever is selected, and
 * places in the operation share no reads. A comparison with it shows columns that the gateway fails to select, and reads
 * that it shares wrongly.
 */

import DataLoader from 'dataloader';
import type { Viewer } from '../../src/auth/viewer.ts';
import { getDatamodel } from '../../src/database/generated/pothos.ts';
import { scopedTo } from '../../src/database/scope/scope.ts';
import type { Context } from '../../src/schema/context.ts';
import type { TestDatabase } from '../support/gateway.ts';

export function plainContext({ sql, client }: TestDatabase, viewer: Viewer): Context {
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
    elsewhere: undefined,
    prisma: scopedTo(client, viewer),
    changeTokens: () => Promise.reject(new Error('tokens are not changed here')),
  };
}

interface Field {
  readonly name: string;
  readonly type: string;
  readonly kind: string;
}

// The generated datamodel has this shape, with every model.
const models = getDatamodel().datamodel.models as Record<string, { readonly fields: readonly Field[] }>;

function widened(model: string, select: Record<string, unknown>): Record<string, unknown> {
  const wide: Record<string, unknown> = { ...select };
  for (const { name, type, kind } of models[model]?.fields ?? []) {
    const below = select[name];
    // A `select` is always an object, though its type here is unknown.
    if (kind !== 'object') wide[name] = true;
    else if (typeof below === 'object' && below !== null && 'select' in below)
      wide[name] = { ...below, select: widened(type, { ...(below.select as Record<string, unknown>) }) };
  }
  return wide;
}
