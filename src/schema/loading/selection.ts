/**
 * What to read of a row: the columns and nested rows that an operation asks for, and no others. A list of fifty
 * sessions is read four times as fast without the columns of its segments that nobody asked for.
 *
 * Each field of a model's type says what it needs, in its `extensions` or by exposing a column.
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
import { isIncluded } from '../conditions.ts';
import type { Context } from '../context.ts';
import type { FilterTarget } from '../filtering/filterTarget.ts';
import { areDetails, isDetailed } from './details.ts';
import { type FieldSite, fieldSiteOf } from './fieldSite.ts';
import { currentViewer, type ViewerRef } from './visible.ts';

/** What a field needs of the row that it belongs to. */
export interface Needs {
  readonly columns?: readonly string[];
  /** Rows of a relation, with the fields selected beneath this one; the value is the rest of the Prisma query. */
  readonly rows?: { readonly relation: string; readonly query: object };
  /** Rows of a relation that do not depend on what is selected beneath the field, but on who asks. */
  readonly forViewer?: (viewer: ViewerRef) => Record<string, object>;
  /** Whether its resolver asks the database beyond the row: such a field can fail by itself, and so may be null. */
  readonly readsDatabase?: boolean;
  /** What it stands for where a list is filtered by it, beside a column that it exposes. */
  readonly filter?: FilterTarget | undefined;
}

/** Where the rows of a connection are in the selection of its field. */
export const nodePaths = [['nodes'], ['edges', 'node']];

interface Plan {
  /** Whether there are details among it, which a mirror may not have yet. */
  readonly hasDetails: boolean;
  /** The same, of rows that say whether it does. */
  readonly saysPending: boolean;
  readonly columns: Readonly<Record<string, true>>;
  readonly rows: readonly { readonly relation: string; readonly query: object; readonly plan: Plan }[];
  readonly forViewer: readonly ((viewer: ViewerRef) => Record<string, object>)[];
}

/**
 * The `select` of a query for the rows that a field resolves to. Where it depends on who asks it has a slot.
 * @param paths where the rows are in the field's selection, for a field that wraps them.
 * @param typeName the rows' type, for a field that may resolve to several.
 */
export function selectFor(
  info: GraphQLResolveInfo,
  context: Pick<Context, 'upstream'>,
  options: { paths?: readonly string[][]; typeName?: string } = {},
): Record<string, unknown> {
  return toSelect(findPlan(info, options), context);
}

/** Whether a field selects details of the rows of a type that it resolves to, which a mirror may not have yet. */
export const selectsDetails = (info: GraphQLResolveInfo, typeName: string): boolean =>
  findPlan(info, { typeName }).hasDetails;

/** What the field needs, or an error for one that does not say: a row without its columns would pass for nulls. */
export function needsOf(type: GraphQLObjectType, fieldName: string): Needs {
  const extensions = type.getFields()[fieldName]?.extensions ?? {};
  const exposed = extensions.pothosExposedField;
  if (typeof exposed === 'string') return { columns: [exposed] };
  // Only this module, `reads.ts` and `devices.ts` deal in this extension, and they write nothing else into it.
  if (extensions.needs) return extensions.needs as Needs;
  if (fieldName === 'id') return {};
  throw new Error(`${type.name}.${fieldName} does not say what it needs of its row`);
}

function toSelect(plan: Plan, context: Pick<Context, 'upstream'>): Record<string, unknown> {
  const select: Record<string, unknown> = { ...plan.columns };
  // A database of the gateway's own has all there is.
  if (plan.saysPending && context.upstream) select.detailsPending = true;
  for (const { relation, query, plan: below } of plan.rows)
    select[relation] = { ...query, select: toSelect(below, context) };
  for (const need of plan.forViewer) Object.assign(select, need(currentViewer));
  return select;
}

/** By the type of the rows. The paths need not be told apart: a resolver asks for one type by the same ones each time. */
const plans = new WeakMap<FieldSite, Map<string, Plan>>();

function findPlan(
  info: GraphQLResolveInfo,
  { paths = [[]], typeName = '' }: { paths?: readonly string[][]; typeName?: string },
): Plan {
  const place = fieldSiteOf(info);
  const known = plans.get(place) ?? new Map<string, Plan>();
  const found = known.get(typeName);
  if (found) return found;

  const response = getNamedType(info.returnType);
  const sets = info.fieldNodes.flatMap(({ selectionSet }) => selectionSet ?? []);
  const ends = paths.map((path) => descend(path, response, sets, info));
  const type = typeName === '' ? ends[0]?.type : info.schema.getType(typeName);
  if (!(type instanceof GraphQLObjectType))
    throw new Error(`${info.fieldName} does not lead to rows of one type`);
  const plan = planFor(
    type,
    ends.flatMap((end) => end.sets),
    info,
  );
  plans.set(place, known.set(typeName, plan));
  return plan;
}

/** Goes down a path of fields, such as `edges` and `node`. */
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

function planFor(type: GraphQLObjectType, sets: readonly SelectionSetNode[], info: GraphQLResolveInfo): Plan {
  const columns: Record<string, true> = { id: true };
  const rows: Plan['rows'][number][] = [];
  const forViewer: Plan['forViewer'][number][] = [];
  for (const [name, below] of fieldsIn(type, sets, info)) {
    const needs = needsOf(type, name);
    for (const column of needs.columns ?? []) columns[column] = true;
    if (needs.forViewer) forViewer.push(needs.forViewer);
    if (needs.rows) {
      const response = getNamedType(type.getFields()[name]?.type);
      if (!(response instanceof GraphQLObjectType))
        throw new Error(`${type.name}.${name} has no rows of one type`);
      rows.push({ ...needs.rows, plan: planFor(response, below, info) });
    }
  }
  const hasDetails = areDetails(type.name, Object.keys(columns)) || rows.some(({ plan }) => plan.hasDetails);
  return { columns, rows, forViewer, hasDetails, saysPending: hasDetails && isDetailed(type.name) };
}

/**
 * The fields that are selected of a type, each with what is selected beneath it, through all fragments. A fragment counts
 * once, however often it is spread.
 */
function fieldsIn(
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
  info: GraphQLResolveInfo,
  found = new Map<string, SelectionSetNode[]>(),
  spread = new Set<string>(),
): Map<string, SelectionSetNode[]> {
  for (const selection of sets.flatMap((set) => set.selections)) {
    // What is left out may be what has the rest fail, such as details that cannot be had.
    if (!isIncluded(selection, info.variableValues)) continue;
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
