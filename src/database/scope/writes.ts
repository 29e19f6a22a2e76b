/** Restricts what writes change and create to rows of the viewer, and what they link to rows that the viewer may see. */

import { isDeepStrictEqual } from 'node:util';
import { type Relation, relationOf, relationsOf } from '../dataModel.ts';
import { conditionOf, type ModelName, type ViewerRef } from '../models.ts';
import { type Args, changed, every, refuse, rowsOf } from './reads.ts';

/** What is written to the columns and the relations of a row that the viewer may change. */
export function written(viewer: ViewerRef, model: ModelName, data: unknown): Args {
  const keys = relationsOf(model).flatMap((name) => relationOf(model, name)?.columns ?? []);
  const fixed = Object.keys(conditionOf(model, viewer, 'writableBy'));
  return changed(data as Args, (name, value) => {
    const link = relationOf(model, name);
    if (value === undefined) return value;
    if (fixed.includes(name)) refuse(`${model}.${name} says whose row it is`);
    if (keys.includes(name)) refuse(`${model}.${name} could be of any row: connect the relation instead`);
    return link ? linked(viewer, `${model}.${name}`, link, value) : value;
  });
}

function linked(
  viewer: ViewerRef,
  field: string,
  { model, columns, inverse = '' }: Relation,
  value: unknown,
): Args {
  /** Whether the rows belong to whom the row with the relation belongs to. */
  const areParts = inverse in conditionOf(model, viewer, 'writableBy');
  return changed(value as Args, (kind, given) => {
    if (areParts && kind === 'create') return every(given, (part) => written(viewer, model, part));
    if (columns.length > 0 && kind === 'connect') return rowsOf(viewer, model, given);
    if (columns.length > 0 && kind === 'disconnect' && given === true) return given;
    return refuse(`${field} takes no ${kind}: write each ${model} by itself`);
  });
}

/** What is written to new rows, which belong to the viewer. @param isMany for an operation that takes columns alone. */
export function created(viewer: ViewerRef, model: ModelName, data: unknown, isMany = false): unknown {
  const [column = ''] = Object.keys(conditionOf(model, viewer, 'writableBy'));
  const owner = relationsOf(model).find((name) =>
    isDeepStrictEqual(relationOf(model, name)?.columns, [column]),
  );
  if (owner === undefined) return refuse(`A ${model} is created together with what it is a part of`);
  const belongs = isMany ? { [column]: viewer.id } : { [owner]: { connect: { id: viewer.id } } };
  return every(data, (row) => ({ ...written(viewer, model, row), ...belongs }));
}
