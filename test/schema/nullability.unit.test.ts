/** Which fields are nullable (docs/architecture.md#what-may-be-null): those that can fail by themselves, so that an error does not remove the data beside them. */

import { type GraphQLField, type GraphQLObjectType, isNonNullType, isObjectType } from 'graphql';
import { expect, it } from 'vitest';
import { isRecordType } from '../../src/database/models.ts';
import { isNullOnlyWithError } from '../../src/schema/fields.ts';
import { needsOf } from '../../src/schema/loading/selection.ts';
import { schema } from '../../src/schema/schema.ts';

/** Fields that read the database and are non-null all the same, each with the reason. */
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

/** Whether the value is read together with the record or the page to which it belongs. */
function isReadWithParent({ type, field }: Field): boolean {
  if (isRecordType(type.name)) return !needsOf(type, field.name).readsDatabase;
  return /(Connection|Edge|PageInfo)$/.test(type.name)
    ? field.name !== 'totalCount'
    : typeof field.extensions.pothosExposedField === 'string';
}

const canFail = (each: Field) =>
  roots.includes(each.type) || each.field.args.length > 0 || !isReadWithParent(each);

it('every field that can fail by itself is nullable, with a few exceptions', () => {
  const nonNull = fields.filter((each) => canFail(each) && isNonNullType(each.field.type));
  expect(nonNull.map(({ name }) => name)).toEqual([...exceptions.keys()]);
  // These include root fields, fields with arguments, links, and fields of the payload.
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

it('lists of parts of a record, and fields that are computed from its columns, are non-null', () => {
  const names = ['segments', 'nodes', 'edges', 'pageInfo', 'isActive', 'isImported', 'viewerCanActivate'];
  const nullable = fields.filter(
    ({ field }) => names.includes(field.name) && !isNonNullType(field.type) && field.args.length === 0,
  );
  expect(nullable.map(({ name }) => name)).toEqual([]);
});

it('fields that are null only with an error are the lists, the viewer and the activation', () => {
  // A list may be empty, and there is always a viewer.
  const onlyWithError = fields.filter(({ field }) => isNullOnlyWithError(field)).map(({ name }) => name);
  // Statistics may have no groups, but always have a total.
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
