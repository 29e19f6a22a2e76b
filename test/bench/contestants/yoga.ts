/** Contestant: Yoga, Pothos and Prisma's client, as their documentation writes them. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import SchemaBuilder from '@pothos/core';
import PrismaPlugin from '@pothos/plugin-prisma';
import RelayPlugin from '@pothos/plugin-relay';
import { PrismaPg } from '@prisma/adapter-pg';
import DataLoader from 'dataloader';
import { createGraphQLError, createYoga } from 'graphql-yoga';
import type PrismaTypes from '../../../src/database/generated/pothos.ts';
import { getDatamodel } from '../../../src/database/generated/pothos.ts';
import { type DttTemplate, PrismaClient } from '../../../src/database/generated/prisma/client.ts';
import { announce, authenticate, openPool } from './listen.ts';

const pool = openPool();

/** The names of prepared statements. Prisma prepares a statement anew for every query unless it has a name. */
const statements = new Map<string, string>();

const prisma = new PrismaClient({
  adapter: new PrismaPg(pool, {
    statementNameGenerator: ({ sql }) => {
      const name = statements.get(sql) ?? `prisma_${statements.size}`;
      statements.set(sql, name);
      return name;
    },
  }),
});

interface Context {
  readonly viewer: number;
  /** Templates by their ids, null for those that are not in the viewer's library. */
  readonly templates: DataLoader<number, DttTemplate | null>;
}

function contextOf(viewer: number): Context {
  return {
    viewer,
    templates: new DataLoader(async (ids) => {
      const where = { id: { in: [...ids] }, libraryEntries: { some: { userId: viewer } } };
      const found = await prisma.dttTemplate.findMany({ where });
      const templateOf = new Map(found.map((template) => [template.id, template]));
      return ids.map((id) => templateOf.get(id) ?? null);
    }),
  };
}

const builder = new SchemaBuilder<{
  PrismaTypes: PrismaTypes;
  Context: Context;
  Scalars: { DateTime: { Input: Date; Output: Date } };
}>({
  plugins: [PrismaPlugin, RelayPlugin],
  prisma: { client: prisma, dmmf: getDatamodel(), onUnusedQuery: null },
  relay: { nodesOnConnection: true },
});

builder.scalarType('DateTime', { serialize: (time) => time.toISOString() });

builder.prismaObject('DttDevice', {
  fields: (t) => ({
    databaseId: t.exposeInt('id'),
    bubbleId: t.exposeString('bubbleId'),
    ownerId: t.exposeInt('ownerId'),
    macAddress: t.exposeString('macAddress', { nullable: true }),
    serialNumber: t.exposeString('serialNumber', { nullable: true }),
    softwareVersion: t.exposeString('softwareVersion', { nullable: true }),
    lastVisitedAt: t.expose('lastVisited', { type: 'DateTime', nullable: true }),
    lastLogAt: t.expose('lastLogAt', { type: 'DateTime', nullable: true }),
    createdAt: t.expose('createdDate', { type: 'DateTime', nullable: true }),
    apiHits: t.exposeInt('apiHits', { nullable: true }),
  }),
});

builder.prismaObject('DttTemplateSegment', {
  fields: (t) => ({
    databaseId: t.exposeInt('id'),
    type: t.exposeString('type'),
    durationSeconds: t.exposeInt('duration'),
    repeat: t.exposeInt('repeat', { nullable: true }),
  }),
});

const Template = builder.prismaObject('DttTemplate', {
  fields: (t) => ({
    databaseId: t.exposeInt('id'),
    bubbleId: t.exposeString('bubbleId'),
    ownerId: t.exposeInt('ownerId', { nullable: true }),
    name: t.exposeString('name'),
    description: t.exposeString('description', { nullable: true }),
    tagline: t.exposeString('tagline', { nullable: true }),
    message: t.exposeString('message', { nullable: true }),
    isPublic: t.exposeBoolean('isPublic'),
    isActive: t.boolean({
      select: (_args, { viewer }) => ({ activeOf: { where: { id: viewer } } }),
      resolve: ({ activeOf }) => activeOf.length > 0,
    }),
    handsFreeMode: t.exposeBoolean('handsFreeMode'),
    targetDepth: t.exposeFloat('targetDepth'),
    targetWindow: t.exposeFloat('targetWindow'),
    toyId: t.exposeString('toyId', { nullable: true }),
    createdAt: t.expose('createdDate', { type: 'DateTime' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
    segments: t.relation('segments', { query: { orderBy: { position: 'asc' } } }),
  }),
});

builder.prismaObject('TrainerSegment', {
  fields: (t) => ({
    databaseId: t.exposeInt('id'),
    rawType: t.exposeString('type'),
    passed: t.exposeBoolean('passed', { nullable: true }),
    gradePercent: t.exposeFloat('percentGrade', { nullable: true }),
    points: t.exposeInt('points', { nullable: true }),
    durationMeasuredSeconds: t.exposeInt('durationMeasured', { nullable: true }),
    durationTargetSeconds: t.exposeInt('durationTarget', { nullable: true }),
    repsMeasured: t.exposeInt('repsMeasured', { nullable: true }),
    repsTarget: t.exposeInt('repsTarget', { nullable: true }),
    speedMeasured: t.exposeFloat('speedMeasured', { nullable: true }),
    speedTarget: t.exposeFloat('speedTarget', { nullable: true }),
    targetDepth: t.exposeFloat('targetDepth', { nullable: true }),
    targetWindow: t.exposeFloat('targetWindow', { nullable: true }),
    timeInTargetDepthMilliseconds: t.exposeFloat('longestDeepthroat', { nullable: true }),
    strokeLength: t.exposeFloat('strokeLength', { nullable: true }),
    distanceTravelledMetres: t.exposeFloat('distanceTravelled', { nullable: true }),
    order: t.exposeInt('order'),
    createdAt: t.expose('createdAt', { type: 'DateTime', nullable: true }),
  }),
});

builder.prismaObject('DttSession', {
  fields: (t) => ({
    databaseId: t.exposeInt('id'),
    bubbleId: t.exposeString('bubbleId'),
    ownerId: t.exposeInt('ownerId'),
    name: t.exposeString('name', { nullable: true }),
    passed: t.exposeBoolean('passed', { nullable: true }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    trainerId: t.exposeInt('trainerId', { nullable: true }),
    templateId: t.exposeInt('templateId', { nullable: true }),
    // The key of this relation contains the owner of both.
    trainer: t.relation('trainer', { nullable: true }),
    // A relation to one record cannot have a condition, and the viewer may have removed the template from the library.
    template: t.field({
      type: Template,
      nullable: true,
      resolve: ({ templateId }, _args, { templates }) =>
        templateId === null ? null : templates.load(templateId),
    }),
    segments: t.relation('segments', { query: { orderBy: { order: 'asc' } } }),
  }),
});

builder.queryType({
  fields: (t) => ({
    dttDevices: t.prismaConnection({
      type: 'DttDevice',
      cursor: 'id',
      defaultSize: 50,
      resolve: (query, _root, _args, { viewer }) =>
        prisma.dttDevice.findMany({
          ...query,
          where: { ownerId: viewer },
          orderBy: [{ lastVisited: { sort: 'desc', nulls: 'last' } }, { id: 'desc' }],
        }),
    }),
    dttSession: t.prismaField({
      type: 'DttSession',
      nullable: true,
      args: { databaseId: t.arg.int({ required: true }) },
      resolve: (query, _root, { databaseId }, { viewer }) =>
        prisma.dttSession.findUnique({ ...query, where: { id: databaseId, ownerId: viewer } }),
    }),
    dttSessions: t.prismaConnection({
      type: 'DttSession',
      cursor: 'id',
      defaultSize: 50,
      resolve: (query, _root, _args, { viewer }) =>
        prisma.dttSession.findMany({
          ...query,
          where: { ownerId: viewer },
          orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
        }),
    }),
    activeDttTemplate: t.prismaField({
      type: 'DttTemplate',
      nullable: true,
      // The key of the relation is that of the viewer's library.
      resolve: (query, _root, _args, { viewer }) =>
        prisma.user.findUniqueOrThrow({ where: { id: viewer } }).activeTemplate(query),
    }),
  }),
});

const TemplateReference = builder.inputType('DttTemplateReference', {
  fields: (t) => ({ databaseId: t.int({ required: true }) }),
});

const Activation = builder
  .objectRef<{ templateId: number; scheduleTypeChanged: boolean }>('ActivateTemplatePayload')
  .implement({
    fields: (t) => ({
      template: t.prismaField({
        type: 'DttTemplate',
        resolve: (query, { templateId }) =>
          prisma.dttTemplate.findUniqueOrThrow({ ...query, where: { id: templateId } }),
      }),
      scheduleTypeChanged: t.exposeBoolean('scheduleTypeChanged'),
    }),
  });

builder.mutationType({
  fields: (t) => ({
    activateTemplate: t.field({
      type: Activation,
      nullable: true,
      args: { template: t.arg({ type: TemplateReference, required: true }) },
      resolve: (_root, { template: { databaseId } }, { viewer }) => activate(viewer, databaseId),
    }),
  }),
});

function activate(viewer: number, templateId: number) {
  return prisma.$transaction(async (transaction) => {
    const template = await transaction.dttTemplate.findUnique({
      where: { id: templateId, ownerId: viewer },
    });
    if (!template) throw createGraphQLError('Template not found or not owned by user');
    const { scheduleType } = await transaction.user.findUniqueOrThrow({ where: { id: viewer } });
    await transaction.user.update({
      where: { id: viewer },
      data: { activeTemplateId: templateId, scheduleType: 'single' },
    });
    return { templateId, scheduleTypeChanged: scheduleType !== 'single' };
  });
}

const yoga = createYoga({
  schema: builder.toSchema(),
  context: async ({ request }) => {
    const viewer = await authenticate(pool, request.headers.get('authorization') ?? undefined);
    if (viewer === null) throw createGraphQLError('Unauthorized');
    return contextOf(viewer);
  },
});

const server = createServer(yoga);
server.listen(0, '127.0.0.1', () => announce((server.address() as AddressInfo).port));
