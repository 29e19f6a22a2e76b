/**
 * Contestant: PostGraphile 5 over the same tables, with its own types and columns. The fields that start from the viewer are added
 * as plans, its way of writing custom fields, so that ownership is a condition in the SQL that it generates. Row level security
 * would do the same, but with a transaction around every request.
 */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { postgraphile } from 'postgraphile';
import {
  type PgResource,
  type PgSelectSingleStep,
  type PgSelectStep,
  sideEffectWithPgClient,
  TYPES,
} from 'postgraphile/@dataplan/pg';
import { makePgService } from 'postgraphile/adaptors/pg';
import {
  type BaseGraphQLArguments,
  context,
  type FieldArgs,
  get,
  object,
  type Step,
} from 'postgraphile/grafast';
import { grafserv } from 'postgraphile/grafserv/node';
import { GraphQLError } from 'postgraphile/graphql';
import { type SQL, sql } from 'postgraphile/pg-sql2';
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber';
import { extendSchema } from 'postgraphile/utils';
import { announce, authenticate, openPool } from './listen.ts';

declare global {
  namespace Grafast {
    interface Context {
      viewer: number;
    }
  }
}

const pool = openPool();

const viewerId = () => context().get('viewer');

/** Adds Dovetail's names for ids and links, the viewer's own root fields, and the activation. */
const viewerFields = extendSchema((build) => {
  const resources: Record<string, PgResource | undefined> = build.input.pgRegistry.pgResources;
  const table = (name: string): PgResource => {
    const found = resources[name];
    if (!found) throw new Error(`PostGraphile knows no ${name}: ${Object.keys(resources)}`);
    return found;
  };
  const [device, session, segment] = [table('DttDevice'), table('DttSession'), table('TrainerSegment')];
  const [template, templateSegment] = [table('DttTemplate'), table('DttTemplateSegment')];

  const page = ($rows: PgSelectStep, { $first, $offset }: FieldArgs<BaseGraphQLArguments>) => {
    $rows.setFirst($first as Step<number>);
    $rows.setOffset($offset as Step<number>);
    return object({ nodes: $rows });
  };
  const newest = ($rows: PgSelectStep, attribute: string, nulls: 'FIRST' | 'LAST') => {
    $rows.orderBy({ attribute, direction: 'DESC', nulls });
    $rows.orderBy({ attribute: 'id', direction: 'DESC' });
    return $rows;
  };
  // The viewer has to become a parameter where the rows are selected: nested fields are planned too late.
  const isActive = new WeakMap<PgSelectStep, SQL>();
  const visible = ($template: PgSelectStep) => {
    const viewer = $template.placeholder(viewerId(), TYPES.int);
    $template.where(sql`(${$template.alias}."ownerId" = ${viewer} OR EXISTS (SELECT FROM "DttLibraryEntry" i
      WHERE i."templateId" = ${$template.alias}.id AND i."userId" = ${viewer}))`);
    isActive.set(
      $template,
      sql`EXISTS (SELECT FROM "User" u WHERE u.id = ${viewer} AND u."activeTemplateId" = ${$template.alias}.id)`,
    );
    return $template;
  };
  const column = (name: string) => ($row: PgSelectSingleStep) => $row.get(name);
  const databaseId = column('id');

  return {
    typeDefs: `
      extend type Query {
        dttDevices(first: Int = 50, offset: Int = 0): ViewerDttDevices!
        dttSession(databaseId: Int!): DttSession
        dttSessions(first: Int = 50, offset: Int = 0): ViewerDttSessions!
        activeDttTemplate: DttTemplate
      }
      extend type Mutation {
        activateTemplate(template: DttTemplateReference!): ActivateTemplatePayload
      }
      input DttTemplateReference {
        databaseId: Int!
      }
      type ActivateTemplatePayload {
        template: DttTemplate
        scheduleTypeChanged: Boolean!
      }
      type ViewerDttDevices {
        nodes: [DttDevice!]!
      }
      type ViewerDttSessions {
        nodes: [DttSession!]!
      }
      extend type DttDevice {
        databaseId: Int!
        lastVisitedAt: Datetime
        createdAt: Datetime
      }
      extend type DttTemplate {
        databaseId: Int!
        createdAt: Datetime
        isActive: Boolean!
        segments: [DttTemplateSegment!]!
      }
      extend type DttTemplateSegment {
        databaseId: Int!
        durationSeconds: Int!
      }
      extend type DttSession {
        databaseId: Int!
        trainer: DttDevice
        template: DttTemplate
        segments: [TrainerSegment!]!
      }
      extend type TrainerSegment {
        databaseId: Int!
        rawType: String!
        gradePercent: Float
        durationMeasuredSeconds: Int
        durationTargetSeconds: Int
        timeInTargetDepthMilliseconds: Float
        distanceTravelledMetres: Float
      }
    `,
    objects: {
      Query: {
        plans: {
          dttDevices: (_root, args) =>
            page(newest(device.find({ ownerId: viewerId() }), 'lastVisited', 'LAST'), args),
          dttSession: (_root, { $databaseId }) =>
            session.find({ id: $databaseId as Step, ownerId: viewerId() }).single(),
          dttSessions: (_root, args) =>
            page(newest(session.find({ ownerId: viewerId() }), 'createdAt', 'FIRST'), args),
          activeDttTemplate: () => {
            const $template = visible(template.find());
            const viewer = $template.placeholder(viewerId(), TYPES.int);
            $template.where(
              sql`${$template.alias}.id = (SELECT "activeTemplateId" FROM "User" WHERE id = ${viewer})`,
            );
            return $template.single();
          },
        },
      },
      Mutation: {
        plans: {
          activateTemplate: (_root, args) =>
            sideEffectWithPgClient(
              template.executor,
              [viewerId(), args.getRaw(['template', 'databaseId']) as Step<number>],
              async (client, [viewer, id]) => {
                const { rows } = await client.query<{ changed: boolean }>({
                  name: 'activate',
                  text: `WITH before AS (SELECT id, "scheduleType" FROM "User" WHERE id = $1 FOR UPDATE)
                    UPDATE "User" SET "activeTemplateId" = $2, "scheduleType" = 'single' FROM before
                    WHERE "User".id = before.id
                      AND EXISTS (SELECT FROM "DttTemplate" WHERE id = $2 AND "ownerId" = $1)
                    RETURNING before."scheduleType" <> 'single' AS changed`,
                  values: [viewer, id],
                });
                if (!rows[0]) throw new GraphQLError('Template not found or not owned by user');
                return { id, scheduleTypeChanged: rows[0].changed };
              },
            ),
        },
      },
      ActivateTemplatePayload: {
        plans: {
          template: ($activated) => visible(template.find({ id: get($activated, 'id') as Step })).single(),
          scheduleTypeChanged: ($activated) => get($activated, 'scheduleTypeChanged'),
        },
      },
      DttDevice: {
        plans: { databaseId, lastVisitedAt: column('lastVisited'), createdAt: column('createdDate') },
      },
      DttTemplateSegment: { plans: { databaseId, durationSeconds: column('duration') } },
      TrainerSegment: {
        plans: {
          databaseId,
          rawType: column('type'),
          gradePercent: column('percentGrade'),
          durationMeasuredSeconds: column('durationMeasured'),
          durationTargetSeconds: column('durationTarget'),
          timeInTargetDepthMilliseconds: column('longestDeepthroat'),
          distanceTravelledMetres: column('distanceTravelled'),
        },
      },
      DttTemplate: {
        plans: {
          databaseId,
          createdAt: column('createdDate'),
          isActive: ($template: PgSelectSingleStep) =>
            $template.select(isActive.get($template.getClassStep()) ?? sql.false, TYPES.boolean),
          segments: ($template: PgSelectSingleStep) => {
            const $segments = templateSegment.find({ templateId: $template.get('id') });
            $segments.orderBy({ attribute: 'position', direction: 'ASC' });
            return $segments;
          },
        },
      },
      DttSession: {
        plans: {
          databaseId,
          trainer: ($session: PgSelectSingleStep) =>
            device.find({ id: $session.get('trainerId'), ownerId: viewerId() }).single(),
          template: ($session: PgSelectSingleStep) =>
            visible(template.find({ id: $session.get('templateId') })).single(),
          segments: ($session: PgSelectSingleStep) => {
            const $segments = segment.find({ sessionId: $session.get('id') });
            $segments.orderBy({ attribute: 'order', direction: 'ASC' });
            $segments.orderBy({ attribute: 'id', direction: 'ASC' });
            return $segments;
          },
        },
      },
    },
  };
});

const instance = postgraphile({
  extends: [PostGraphileAmberPreset],
  plugins: [viewerFields],
  // PostGraphile's own `dttSession(id:)` by global id would have the same name as the viewer's.
  disablePlugins: ['NodePlugin'],
  pgServices: [makePgService({ pool, schemas: ['public'], pubsub: false })],
  grafserv: { graphqlPath: '/graphql', graphiql: false, websockets: false, watch: false },
  grafast: {
    explain: false,
    context: async ({ node }) => {
      const viewer = await authenticate(pool, node?.req.headers.authorization);
      if (viewer === null) throw new GraphQLError('Unauthorized');
      return { viewer };
    },
  },
});

const server = createServer();
await instance.createServ(grafserv).addTo(server);
server.listen(0, '127.0.0.1', () => announce((server.address() as AddressInfo).port));
