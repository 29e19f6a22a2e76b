/** Which fields are nullable (docs/architecture.md#what-may-be-null): those that can fail by themselves, so that an error does not remove the data beside them. */

import { type GraphQLField, type GraphQLObjectType, isNonNullType, isObjectType } from 'graphql';
import { expect, it } from 'vitest';
import { isRecordType } from '../../src/database/models.ts';
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
