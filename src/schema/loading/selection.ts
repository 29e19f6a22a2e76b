/**
 * Translates the selection of a field into the columns and nested rows to read. Only what an operation selects is read: a list of
 * fifty sessions is read four times as fast without the columns of its segments.
 *
 * Each field of a model's type declares what it needs in its `extensions`, or by exposing a column.
 */

import {
  type GraphQLNamedType,
  GraphQLObjectType,
  type GraphQLResolveInfo,
  getNamedType,
  isAbstractType,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import { currentViewer, type ViewerRef } from '../../database/models.ts';
import type { Context } from '../context.ts';
import type { FilterTarget } from '../filtering/fields.ts';
import { areDetails, isDetailed } from './details.ts';
import { placeOf } from './loaders.ts';

/** What a field needs of the row that it belongs to. */
export interface FieldRequirements {
  readonly columns?: readonly string[];
  /** Rows of a relation, with the fields selected beneath this one; the value is the rest of the Prisma query. */
  readonly rows?: { readonly relation: string; readonly query: object };
  /** Rows of a relation that depend on the viewer, and not on what is selected beneath the field. */
  readonly forViewer?: (viewer: ViewerRef) => Record<string, object>;
  /** Its meaning in the filter of a list. For a field that exposes a column, that column. */
  readonly filter?: FilterTarget | undefined;
}

/** The paths to the rows of a connection in the selection of its field. */
export const nodePaths = [['nodes'], ['edges', 'node']];

/** The place of the rows in the value of a field. */
export interface SelectionOptions {
  /** The paths to them in the field's selection, for a field that wraps them. */
  readonly paths?: readonly string[][] | undefined;
  /** Their type, for a field that may resolve to several. */
  readonly typeName?: string | undefined;
}

/** The `select` of a query. A slot takes the place of the viewer's id. */
type Select = Readonly<Record<string, unknown>>;

/**
 * The `select` of a query for the rows that a field resolves to. A mirror also selects whether details are pending. The name of the
 * plan does not contain the paths: a resolver always passes the same paths for a type.
 */
export const selectFor = (
  info: GraphQLResolveInfo,
  { upstream }: Pick<Context, 'upstream'>,
  { paths = [[]], typeName = '' }: SelectionOptions = {},
): Select =>
  placeOf(info).once(`select: ${typeName}${upstream ? ', of a mirror' : ''}`, () => {
    const response = getNamedType(info.returnType);
    const sets = info.fieldNodes.flatMap(({ selectionSet }) => selectionSet ?? []);
    const ends = paths.map((path) => descend(path, response, sets, info));
    const type = typeName === '' ? ends[0]?.type : info.schema.getType(typeName);
    const endSets = ends.flatMap((end) => end.sets);
    return selectOf(objectType(type, info.fieldName), endSets, info, upstream !== undefined);
  });

/**
 * The needs of a field.
 * @throws for a field that does not declare them: values that were not read would look like nulls.
 */
export function needsOf(type: GraphQLObjectType, fieldName: string): FieldRequirements {
  const extensions = type.getFields()[fieldName]?.extensions ?? {};
  const exposed = extensions.pothosExposedField;
  if (typeof exposed === 'string') return { columns: [exposed] };
  // Only `reads.ts` and `devices.ts` write this extension, and they write values of this type.
  if (extensions.needs) return extensions.needs as FieldRequirements;
  if (fieldName === 'id') return {};
  throw new Error(`${type.name}.${fieldName} does not say what it needs of its row`);
}

/** Follows a path of fields, such as `edges` and `node`. */
function descend(
  path: readonly string[],
  type: GraphQLNamedType,
  sets: readonly SelectionSetNode[],
  info: GraphQLResolveInfo,
): { type: GraphQLNamedType; sets: readonly SelectionSetNode[] } {
  const [step, ...rest] = path;
  if (step === undefined || !(type instanceof GraphQLObjectType)) return { type, sets };
  const field = type.getFields()[step];
  if (!field) throw new Error(`${type.name} has no field ${step}`);
  return descend(rest, getNamedType(field.type), fieldsIn(type, sets, info).get(step) ?? [], info);
}

function selectOf(
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
  info: GraphQLResolveInfo,
  isMirror: boolean,
): Select {
  const select: Record<string, unknown> = { id: true };
  for (const [name, below] of fieldsIn(type, sets, info)) {
    const { columns = [], rows, forViewer } = needsOf(type, name);
    for (const column of columns) select[column] = true;
    Object.assign(select, forViewer?.(currentViewer));
    if (!rows) continue;
    const child = objectType(getNamedType(type.getFields()[name]?.type), name);
    const selected = selectOf(child, below, info, isMirror);
    select[rows.relation] = { ...rows.query, select: selected };
    // Only a mirror can have pending details.
    if (isMirror && isDetailed(type.name) && areDetails(child.name, Object.keys(selected)))
      select.detailsPending = true;
  }
  return select;
}

function objectType(type: GraphQLNamedType | undefined, fieldName: string): GraphQLObjectType {
  if (type instanceof GraphQLObjectType) return type;
  throw new Error(`${fieldName} does not lead to rows of one type`);
}

/**
 * The selected fields of a type, each with the selection sets beneath it, including those in fragments. A fragment is read
 * once, however often it is spread. Usually the document has no conditions any more (`compile.ts`). If it has, all fields are read.
 */
function fieldsIn(
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
  info: GraphQLResolveInfo,
  found = new Map<string, SelectionSetNode[]>(),
  spread = new Set<string>(),
): Map<string, SelectionSetNode[]> {
  for (const selection of sets.flatMap((set) => set.selections)) {
    if (selection.kind === Kind.FIELD) {
      const name = selection.name.value;
      if (name.startsWith('__')) continue;
      const below = found.get(name) ?? [];
      if (selection.selectionSet) below.push(selection.selectionSet);
      found.set(name, below);
      continue;
    }
    if (selection.kind === Kind.FRAGMENT_SPREAD) {
      if (spread.has(selection.name.value)) continue;
      spread.add(selection.name.value);
    }
    const fragment =
      selection.kind === Kind.INLINE_FRAGMENT ? selection : info.fragments[selection.name.value];
    if (fragment && applies(fragment.typeCondition?.name.value, type, info)) {
      fieldsIn(type, [fragment.selectionSet], info, found, spread);
    }
  }
  return found;
}

function applies(
  condition: string | undefined,
  type: GraphQLObjectType,
  { schema }: GraphQLResolveInfo,
): boolean {
  if (condition === undefined || condition === type.name) return true;
  const named = schema.getType(condition);
  return isAbstractType(named) && schema.isSubType(named, type);
}
