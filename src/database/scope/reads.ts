/** Restricts the arguments of reads to rows that the viewer may see: conditions, orders, selections and counts. */

import { isDeepStrictEqual } from 'node:util';
import { type Relation, relationOf, relationsOf } from '../dataModel.ts';
import { type ModelName, type ViewerRef, visibleTo } from '../models.ts';

/** Arguments of the client, or a part of them. Their types depend on the model, which is a value here. */
export type Args = Readonly<Record<string, unknown>>;

const isArgs = (value: unknown): value is Args => typeof value === 'object' && value !== null;

/** A cursor, and the arguments of the list that begins there. */
export interface Cursor {
  readonly model: ModelName;
  readonly at: Args;
  readonly list: Record<string, unknown>;
}

/** What the arguments of one operation are restricted for. */
interface Scope {
  readonly viewer: ViewerRef;
  /** Models whose rows may be missing here. */
  readonly incomplete: readonly ModelName[];
  /** The cursors that were found, which remain to be checked. */
  readonly cursors: Cursor[];
}

/** The arguments that say nothing about other rows. */
const plain = [
  ...['take', 'skip', 'distinct', 'omit', 'by', 'having'],
  ...['_count', '_avg', '_sum', '_min', '_max'],
];

/** The arguments of an operation, or of a relation to many rows. */
export function restrictedList(scope: Scope, model: ModelName, args: Args): Record<string, unknown> {
  const { where, orderBy, cursor, select, include, ...others } = args;
  if (scope.incomplete.includes(model))
    refuse(`Each ${model} may come after its record, and only fields of src/schema/fields.ts wait for them`);
  for (const name of Object.keys(others))
    if (!plain.includes(name)) refuse(`${name} is not restricted to the viewer`);
  const list: Record<string, unknown> = {
    ...others,
    ...selectionOf(scope, model, { select, include }),
    where: rowsOf(scope.viewer, model, where),
    ...(orderBy !== undefined && { orderBy: orderOf(model, orderBy) }),
    ...(cursor !== undefined && { cursor }),
  };
  if (isArgs(cursor)) scope.cursors.push({ model, at: cursor, list });
  return list;
}

/**
 * The rows that meet both conditions. The columns of a unique key stay where they have to be.
 * @param condition is of this program, and is not restricted itself.
 */
function rowsOf(
  viewer: ViewerRef,
  model: ModelName,
  where: unknown = {},
  condition: object = visibleTo(viewer, model),
): object {
  const columns: Record<string, unknown> = {};
  const others = [condition];
  for (const [name, value] of Object.entries(where as Args)) {
    const link = relationOf(model, name);
    if (value === undefined) continue;
    const below = () => every(value, (each) => rowsOf(viewer, model, each, {}));
    // An empty `OR` has no rows where it stands, and all rows within `AND`.
    if (name === 'OR') columns.OR = below();
    else if (name === 'AND' || name === 'NOT') others.push({ [name]: below() });
    else if (link) others.push(relatedOf(viewer, name, link, value));
    else columns[name] = value;
  }
  return { ...columns, AND: others };
}

/** A condition on related rows. Those that the viewer may not see are as if they did not exist. */
function relatedOf(viewer: ViewerRef, name: string, { model, isList }: Relation, value: unknown): object {
  const seen = visibleTo(viewer, model);
  const isNamed = isArgs(value) && (isList || 'is' in value || 'isNot' in value);
  const conditions = Object.entries(isNamed ? value : { is: value }).map(([kind, where]) => {
    if (where === undefined) return {};
    if (where === null) return { [name]: { [kind === 'is' ? 'isNot' : 'is']: seen } };
    const rows = rowsOf(viewer, model, where);
    // `every` would ask for rows of others as well.
    if (kind === 'every') return { [name]: { none: { ...seen, NOT: rows } } };
    return { [name]: { [kind]: rows } };
  });
  return { AND: conditions };
}

const orderOf = (model: ModelName, given: unknown): unknown =>
  every(given, (each) =>
    changed(each, (name, value) => {
      const link = relationOf(model, name);
      return link ? orderOf(safeLink(model, name, link), value) : value;
    }),
  );

const selectionOf = (scope: Scope, model: ModelName, { select, include }: Args): Args => ({
  ...(isArgs(select) && { select: fieldsOf(scope, model, select) }),
  ...(isArgs(include) && { include: fieldsOf(scope, model, include) }),
});

/** A `select` or `include`. */
const fieldsOf = (scope: Scope, model: ModelName, wanted: Args): Args =>
  changed(wanted, (name, value) => {
    const link = relationOf(model, name);
    if (!value) return value;
    if (name === '_count') return countsOf(scope.viewer, model, value);
    if (!link) return value;
    const args = isArgs(value) ? value : {};
    if (link.isList) return restrictedList(scope, link.model, args);
    const { omit, ...others } = args;
    const selection = selectionOf(scope, safeLink(model, name, link), others);
    return { ...(omit !== undefined && { omit }), ...selection };
  });

function countsOf(viewer: ViewerRef, model: ModelName, value: unknown): Args {
  const lists = relationsOf(model).filter((name) => relationOf(model, name)?.isList);
  const all = Object.fromEntries(lists.map((name) => [name, true]));
  const wanted = isArgs(value) && isArgs(value.select) ? value.select : all;
  const select = changed(wanted, (name, given) => {
    const link = relationOf(model, name);
    return link && given ? { where: rowsOf(viewer, link.model, isArgs(given) ? given.where : {}) } : given;
  });
  return { select };
}

/**
 * The model of a link to one row.
 * @throws unless the viewer may see that row whenever they may see the row with the link: Prisma takes no condition for it.
 */
function safeLink(model: ModelName, name: string, link: Relation): ModelName {
  const viewer = { id: 0 };
  const own = visibleTo(viewer, model);
  const target = visibleTo(viewer, link.model);
  const [[column, value] = []] = Object.entries(own);
  const isSafe =
    !link.isList &&
    // The condition is that on the linked row.
    (isDeepStrictEqual(own[name], target) ||
      // The key is that of the owner.
      (link.columns[0] === column && isDeepStrictEqual(target, { id: value })) ||
      // The key includes the owner, whom both rows have then.
      (link.columns[1] === column && isDeepStrictEqual(target, own)));
  if (isSafe) return link.model;
  if (link.isList) return refuse(`${model}.${name} has rows that the viewer may not see`);
  return refuse(
    `${model}.${name} may lead to a ${link.model} that the viewer may not see, and Prisma takes no condition for it. ` +
      `Write a field as t.field(toOne(${link.model}, '${link.columns[0]}')), with toOne of src/schema/fields.ts`,
  );
}

/** Changes one value, or each of several. */
const every = (value: unknown, change: (each: Args) => unknown): unknown =>
  Array.isArray(value) ? value.map(change) : change(value as Args);

/** The same properties with other values. */
const changed = (args: Args, change: (name: string, value: unknown) => unknown): Args =>
  Object.fromEntries(Object.entries(args).map(([name, value]) => [name, change(name, value)]));

export function refuse(message: string): never {
  throw new Error(message);
}
