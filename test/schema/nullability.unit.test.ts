/** What may be null (docs/architecture.md#what-may-be-null): what can fail by itself, so that it erases nothing beside it. */

import { type GraphQLField, type GraphQLObjectType, isNonNullType, isObjectType } from 'graphql';
import { expect, it } from 'vitest';
import { isNullOnlyWithError } from '../../src/schema/fields.ts';
import { needsOf } from '../../src/schema/loading/selection.ts';
import { visible } from '../../src/schema/loading/visible.ts';
import { schema } from '../../src/schema/schema.ts';

/** Fields that ask the database and are non-null all the same, each with the reason. */
const exceptions: ReadonlyMap<string, string> = new Map(
  Object.values(schema.getTypeMap())
    .filter(({ name }) => name.endsWith('Connection'))
    .map(({ name }) => [`${name}.totalCount`, 'its connection is nullable, and has nothing else to lose']),
);

const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];

interface Field {
  readonly name: string;
  readonly type: GraphQLObjectType;
  readonly field: GraphQLField<unknown, unknown>;
}

const fields: readonly Field[] = Object.values(schema.getTypeMap())
  .filter(isObjectType)
  .filter(({ name }) => !name.startsWith('__'))
  .flatMap((type) =>
    Object.values(type.getFields()).map((field) => ({ name: `${type.name}.${field.name}`, type, field })),
  );

/** Whether its value was read together with the record, or the page, that it belongs to. */
function isReadWithParent({ type, field }: Field): boolean {
  if (Object.hasOwn(visible, type.name)) return !needsOf(type, field.name).readsDatabase;
  return /(Connection|Edge|PageInfo)$/.test(type.name)
    ? field.name !== 'totalCount'
    : typeof field.extensions.pothosExposedField === 'string';
}

const canFail = (each: Field) =>
  roots.includes(each.type) || each.field.args.length > 0 || !isReadWithParent(each);

it('is every field that can fail by itself, but for the exceptions', () => {
  const nonNull = fields.filter((each) => canFail(each) && isNonNullType(each.field.type));
  expect(nonNull.map(({ name }) => name)).toEqual([...exceptions.keys()]);
  // Among them are root fields, fields with arguments, links, and fields of the payload.
  expect(fields.filter(canFail).map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      'Query.viewer',
      'Mutation.activateTemplate',
      'Subscription.devices',
      'DttDevice.sessions',
      'DttSession.trainer',
      'User.latestDttSession',
      'ActivateTemplatePayload.viewer',
    ]),
  );
});

it('is no list of what belongs to a record, nor what follows from its columns', () => {
  const names = ['segments', 'nodes', 'edges', 'pageInfo', 'isActive', 'isImported', 'viewerCanActivate'];
  const nullable = fields.filter(
    ({ field }) => names.includes(field.name) && !isNonNullType(field.type) && field.args.length === 0,
  );
  expect(nullable.map(({ name }) => name)).toEqual([]);
});

it('is null without an error only where it says that there may be nothing', () => {
  // A list has no records at worst, and there is always a viewer.
  const onlyWithError = fields.filter(({ field }) => isNullOnlyWithError(field)).map(({ name }) => name);
  // Statistics have no groups at worst, and a total all the same.
  const lists = fields.filter(
    ({ field }) => field.args.some(({ name }) => name === 'first' || name === 'by') || field.name === 'nodes',
  );
  expect(onlyWithError.toSorted()).toEqual(
    [
      'ActivateTemplatePayload.viewer',
      'Mutation.activateTemplate',
      'Query.viewer',
      'Subscription.viewer',
      ...lists.map(({ name }) => name).filter((name) => !/Connection\.nodes$/.test(name)),
    ].toSorted(),
  );
});
