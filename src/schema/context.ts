/**
 * The context of an operation, which its resolvers share; the places of fields in the operation, with the plans that are made once for
 * each; and the DataLoaders of an operation, which read linked records in batches.
 */

import DataLoader from 'dataloader';
import type {
  DocumentNode,
  ExecutionResult,
  FieldNode,
  GraphQLObjectType,
  GraphQLResolveInfo,
  GraphQLSchema,
} from 'graphql';
import type pg from 'pg';
import type { Viewer } from '../auth/viewer.ts';
import type { ModelName } from '../database/models.ts';
import type { Sql } from '../database/reader/sql.ts';
import type { ScopedClient } from '../database/scope/scope.ts';
import type { RunInTurn } from '../database/turns.ts';

/** The data of a viewer whose account lives elsewhere, for a gateway that has a copy of it. */
export interface AccountElsewhere {
  /**
   * Activates a template there and then here.
   * @param activateHere is called once the template is active there.
   * @param guard runs each request that is sent there, which may have waited: it fails if the viewer's token no longer allows that.
   * @returns the result of `activateHere`, and whether the schedule type has changed, null if that is not known; undefined for a viewer whose
   * account lives here.
   * @throws a client error if the activation is rejected there, or its result is unknown.
   */
  activate<Here>(
    viewer: Viewer,
    templateId: number,
    activateHere: () => Promise<Here>,
    guard?: RunInTurn,
  ): Promise<{ here: Here; scheduleTypeChanged: boolean | null } | undefined>;
  /** Models whose rows may be missing here. Prisma's client does not read them; the SQL interface below completes them. */
  readonly incomplete: readonly ModelName[];
  /**
   * The SQL interface of an operation, over that of the gateway.
   * @param watch runs what reads the database besides.
   */
  wrapSql(viewer: Viewer, sql: Sql, watch: RunInTurn): Sql;
}

/** Code that executes an operation, given coerced values of its variables. Its result is exactly that of graphql-js. */
export type CompiledOperation = (
  variables: Readonly<Record<string, unknown>>,
  context: Context | undefined,
) => Promise<ExecutionResult>;

/** What extensions do for an operation. */
export interface OperationHooks {
  /** A viewer activates a template, or reads: the data of an account that lives elsewhere. */
  readonly elsewhere?: AccountElsewhere | undefined;
  /**
   * An operation runs again, or one of its variants.
   * @param document has the operation alone, with no directives.
   * @returns undefined if graphql-js has to execute it.
   */
  readonly compile?:
    | ((schema: GraphQLSchema, document: DocumentNode) => Promise<CompiledOperation | undefined>)
    | undefined;
}

/**
 * Runs a transaction that changes tokens of the viewer. Fails if the viewer's own has ended. Once it has ended, this process looks all
 * of them up again.
 * @param run also gets until when the viewer's own token is valid, in milliseconds since the epoch.
 * @param endsOwn whether it ends the viewer's own, whose payload is then read all the same.
 */
type ChangeTokens = <Result>(
  run: (connection: pg.PoolClient, validUntil: number) => Promise<Result>,
  endsOwn?: boolean,
) => Promise<Result>;

/** What an operation has of Prisma's client. */
interface Clients {
  /** The client of the viewer: all that it reads is theirs. */
  readonly prisma: ScopedClient;
  readonly changeTokens: ChangeTokens;
}

/** Each operation has a context of its own, since its loaders cache rows. */
export interface Context extends Clients, OperationHooks {
  readonly viewer: Viewer;
  readonly sql: Sql;
  readonly loaders: ReturnType<typeof createLoaders>;
}

/** @param clients by default none: only fields of the reader work. */
export function createContext(
  sql: Sql,
  viewer: Viewer,
  { elsewhere, compile }: OperationHooks = {},
  clients?: Clients,
): Context {
  // Without clients, a field that uses them fails.
  return { viewer, sql, loaders: createLoaders(), elsewhere, compile, ...(clients as Clients) };
}

/**
 * A field in an operation: its parent type, and the nodes of the document that select it. Together they determine the selection and
 * the arguments, so resolvers at the same place do the same for different parents. The response path would not suffice: under
 * an interface, one path can lead through several types.
 */
interface Place {
  readonly parentType: GraphQLObjectType;
  readonly nodes: readonly FieldNode[];
  /** The plan of this place with that name. `plan` makes it the first time. There must be few names. */
  once<Value>(name: string, plan: () => Value): Value;
}

/** The places by the first of their nodes, so that they are garbage-collected with the document. */
const places = new WeakMap<FieldNode, Place[]>();

/** Always returns the same object for a place. */
export function placeOf({ parentType, fieldNodes: nodes }: GraphQLResolveInfo): Place {
  // A resolver runs for a field of the document, so there is at least one node.
  const [first] = nodes as readonly [FieldNode, ...FieldNode[]];
  const known = places.get(first) ?? [];
  const found = known.find((place) => place.parentType === parentType && areSame(place.nodes, nodes));
  if (found) return found;
  // A name always has values of the same type, which the type of the map cannot express.
  const planned = new Map<string, never>();
  const place: Place = {
    parentType,
    nodes,
    once(name, plan) {
      const value = planned.get(name) ?? plan();
      planned.set(name, value as never);
      return value;
    },
  };
  places.set(first, [...known, place]);
  return place;
}

const areSame = (one: readonly FieldNode[], other: readonly FieldNode[]) =>
  one === other || (one.length === other.length && one.every((node, index) => node === other[index]));

function createLoaders() {
  // A place always creates loaders of the same type, which the type of the map cannot express.
  const loaders = new Map<Place | string, DataLoader<number, never>>();
  const values = new Map<Place | string, Promise<never>>();
  return {
    /**
     * The loader of a place in the operation, or of a name. All objects of a list resolve the same place, so their
     * look-ups are batched. Another place may select other columns or pass other arguments, so it has a loader of its own.
     * `createBatch` is called once per place.
     */
    at<Value>(
      place: Place | string,
      createBatch: () => (ids: readonly number[]) => Promise<ReadonlyMap<number, Value>>,
    ): DataLoader<number, Value | undefined> {
      let loader = loaders.get(place);
      if (!loader) {
        const batch = createBatch();
        loader = new DataLoader(async (ids) => {
          const found = await batch(ids);
          return ids.map((id) => found.get(id) as never);
        });
        loaders.set(place, loader);
      }
      return loader;
    },
    /** A value that is read once per operation: the first call with a place or a name reads it, and later calls share the result. */
    once<Value>(place: Place | string, read: () => Promise<Value>): Promise<Value> {
      let value = values.get(place);
      if (!value) {
        value = read() as Promise<never>;
        values.set(place, value);
      }
      return value;
    },
    /** Discards everything that was read, after a write or before the operation is executed again. */
    clear(): void {
      loaders.clear();
      values.clear();
    },
  };
}
