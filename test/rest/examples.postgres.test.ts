/** The examples in the service's public reference: the gateway gives the same responses when its database has their records. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createToken } from '../../src/auth/tokens.ts';
import type { PrismaClient } from '../../src/database/generated/prisma/client.ts';
import examples from '../support/examples.json' with { type: 'json' };
import { graphqlOnEveryPath, openTestGateway, rest, type TestGateway } from '../support/gateway.ts';
import { listOf } from '../support/restResponses.ts';

let gateway: TestGateway;
let token: string;

beforeAll(async () => {
  gateway = await openTestGateway();
  await loadExamples(gateway.database.client);
  ({ token } = await createToken(gateway.database.pool, examples['GET /users/42'].username, 'test'));
});
afterAll(() => gateway?.close());

/** Each example with the field of the GraphQL query for the same data. */
const fields: Readonly<Record<Exclude<keyof typeof examples, 'about'>, string>> = {
  'GET /users/42': 'user(databaseId: 42)',
  'GET /dtt': 'dttDevices',
  'GET /dtt/templates': 'dttTemplates',
  'GET /dtt/templates/1': 'dttTemplate(databaseId: 1)',
  'GET /lkbx/1': 'lkbxDevice(databaseId: 1)',
  'GET /lkbx/templates/1': 'lockTemplate(databaseId: 1)',
  'GET /lkbx/templates/active': 'activeLockTemplate',
  'GET /lkbx/sessions': 'lockSessions',
  'GET /lkbx/session/current': 'activeLockSession',
  'GET /ossm/1': 'ossmDevice(databaseId: 1)',
};
const { about: _, ...responses } = examples;
const cases = Object.entries(responses).map(([route, response]) => ({
  route,
  path: route.replace(/^GET /, ''),
  field: Object.entries(fields).find(([name]) => name === route)?.[1] ?? '',
  response: response as Example | Example[],
}));

type Example = { [field: string]: string | number | boolean | null | Example[] };

describe.each(cases)('the example of $route', ({ path, field, response }) => {
  it('equals the response of the REST API', async () => {
    const given = await rest(gateway, token, path);
    const data = Array.isArray(response) ? listOf(given).data : given.body.data;
    expect(given.status).toBe(200);
    expect(withInstants(data)).toMatchObject(withInstants(response));
  });

  it('has the same data as the response of the GraphQL API', async () => {
    const query = Array.isArray(response)
      ? `{ data: ${field} { nodes ${selectionOf(response[0] ?? {})} } }`
      : `{ data: ${field} ${selectionOf(response)} }`;
    const { data, errors } = await graphqlOnEveryPath(gateway, token, query);
    expect(errors).toBeUndefined();
    // A GraphQL response has exactly the selected fields.
    expect(withInstants(Array.isArray(response) ? data.data.nodes : data.data)).toEqual(
      withInstants(response),
    );
  });
});

/** Adds the records of all examples, with the values that they leave out but the database requires. */
async function loadExamples(database: PrismaClient): Promise<void> {
  await database.user.create({ data: examples['GET /users/42'] });
  await database.dttDevice.createMany({ data: examples['GET /dtt'] });
  const { Segment, isActive, ...template } = examples['GET /dtt/templates/1'];
  await database.dttTemplate.create({
    data: {
      ...template,
      segments: { create: Segment.map((segment, position) => ({ ...segment, position })) },
    },
  });
  if (isActive) {
    await database.user.update({ where: { id: template.ownerId }, data: { activeTemplateId: template.id } });
  }
  await database.lkbxDevice.create({ data: examples['GET /lkbx/1'] });
  await database.lockTemplate.create({ data: examples['GET /lkbx/templates/1'] });
  const current = examples['GET /lkbx/session/current'];
  for (const { LockSegment, ...session } of examples['GET /lkbx/sessions']) {
    await database.lockSession.create({
      data: {
        ...session,
        publicId: `public-${session.id}`,
        startDate: current.startDate,
        templateId: examples['GET /lkbx/templates/active'].id,
        segments: {
          create: LockSegment.map((segment, index) => ({
            ...segment,
            isLocked: current.LockSegment[index]?.isLocked ?? false,
          })),
        },
      },
    });
  }
  await database.ossmDevice.create({ data: examples['GET /ossm/1'] });
}

/** The selection of the fields of an example, under the names that it gives them. */
function selectionOf(example: Example): string {
  const schemaNames: Readonly<Record<string, string>> = {
    id: 'databaseId',
    Segment: 'segments',
    LockSegment: 'segments',
    OSSMFirmwareId: 'firmwareId',
    lastVisited: 'lastVisitedAt',
    createdDate: 'createdAt',
    duration: 'durationSeconds',
    breakRegularity: 'breakRegularitySeconds',
    startDate: 'startedAt',
    pairingExpires: 'pairingExpiresAt',
  };
  const selected = Object.entries(example).map(([name, value]) => {
    const selection = Array.isArray(value) ? selectionOf(value[0] ?? {}) : '';
    return `${name}: ${schemaNames[name] ?? name} ${selection}`;
  });
  return `{ ${selected.join(' ')} }`;
}

/** The JSON value with its timestamps as dates, so that equal instants in different notations are equal. */
function withInstants(value: unknown): object {
  return JSON.parse(JSON.stringify(value), (_key, part) =>
    typeof part === 'string' && /^\d{4}-\d\d-\d\dT/.test(part) ? new Date(part) : part,
  );
}
