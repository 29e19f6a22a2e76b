/** The workloads: each is a request to either API, for a random user and record. */

export type Endpoint = 'rest' | 'graphql';

/** One request, as the load generator sends it. */
export interface BenchRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The user and the records of a request. */
export interface Subject {
  readonly user: number;
  readonly session: number;
  readonly template: number;
}

export interface Workload {
  readonly name: string;
  readonly title: string;
  readonly document: string;
  variables?(subject: Subject): Record<string, unknown>;
  /** Method and path of the REST API. */
  rest(subject: Subject): readonly ['GET' | 'POST', string];
  /** Whether the REST API has no such route. */
  readonly isGraphqlOnly?: boolean;
  /** Converts the data of a GraphQL response to that of the REST response. */
  toRest(data: Json): Json;
}

// biome-ignore lint/suspicious/noExplicitAny: responses of other programs, which are only compared.
export type Json = any;

const segmentSummary = 'id: databaseId type: rawType passed percentGrade: gradePercent points';
const session =
  'id: databaseId bubble_id: bubbleId name passed created_at: createdAt trainer_id: trainerId settings_id: templateId';
const template = `id: databaseId bubbleId ownerId name description tagline message isPublic isActive handsFreeMode
  targetDepth targetWindow toyId createdDate: createdAt updatedAt`;

const pageOf50 = { limit: 50, offset: 0 };
const listOf = (key: string) => (data: Json) => ({ data: data[key].nodes, pagination: pageOf50 });

export const workloads: readonly Workload[] = [
  {
    name: 'devices',
    title: 'device list',
    document: `query Devices { dttDevices { nodes { id: databaseId bubbleId ownerId macAddress serialNumber
      softwareVersion lastVisited: lastVisitedAt lastLogAt createdDate: createdAt apiHits } } }`,
    rest: () => ['GET', '/dtt'],
    toRest: listOf('dttDevices'),
  },
  {
    name: 'session',
    title: 'session by id, with segments',
    document: `query Session($id: Int!) { dttSession(databaseId: $id) { ${session}
      TrainerSegment: segments { ${segmentSummary} durationMeasured: durationMeasuredSeconds
        durationTarget: durationTargetSeconds repsMeasured repsTarget
        speedMeasured speedTarget targetDepth targetWindow longestDeepthroat: timeInTargetDepthMilliseconds
        strokeLength distanceTravelled: distanceTravelledMetres
        order createdAt } } }`,
    variables: (subject) => ({ id: subject.session }),
    rest: (subject) => ['GET', `/dtt/sessions/${subject.session}`],
    toRest: (data) => data.dttSession,
  },
  {
    name: 'sessions',
    title: '50 sessions, with segments',
    document: `query Sessions { dttSessions(first: 50) { nodes { ${session}
      TrainerSegment: segments { ${segmentSummary} } } } }`,
    rest: () => ['GET', '/dtt/sessions?limit=50'],
    toRest: listOf('dttSessions'),
  },
  {
    name: 'linked',
    title: '50 sessions, with trainer, template, segments',
    document: `query Linked { dttSessions(first: 50) { nodes { ${session}
      trainer { id: databaseId serialNumber macAddress lastVisited: lastVisitedAt }
      template { id: databaseId name targetDepth targetWindow }
      TrainerSegment: segments { ${segmentSummary} } } } }`,
    rest: () => ['GET', '/dtt/sessions/linked?limit=50'],
    isGraphqlOnly: true,
    toRest: listOf('dttSessions'),
  },
  {
    name: 'active',
    title: 'active template, with segments',
    document: `query Active { activeDttTemplate { ${template}
      Segment: segments { id: databaseId type duration: durationSeconds repeat } } }`,
    rest: () => ['GET', '/dtt/templates/active'],
    toRest: (data) => data.activeDttTemplate,
  },
  {
    name: 'activation',
    title: 'activation of a template',
    document: `mutation Activation($id: Int!) { activateTemplate(template: { databaseId: $id }) {
      template { id: databaseId name isActive Segment: segments { id: databaseId type duration: durationSeconds } }
      scheduleTypeChanged } }`,
    variables: (subject) => ({ id: subject.template }),
    rest: (subject) => ['POST', `/dtt/templates/${subject.template}`],
    toRest: ({ activateTemplate: { template, scheduleTypeChanged } }) => ({
      ...template,
      scheduleTypeChanged,
    }),
  },
];

export function workloadNamed(name: string): Workload {
  const workload = workloads.find((each) => each.name === name);
  if (!workload) throw new Error(`there is no workload ${name}`);
  return workload;
}

const json = { 'Content-Type': 'application/json' };

export function requestOf(workload: Workload, endpoint: Endpoint, subject: Subject): BenchRequest {
  const authorization = { Authorization: `Bearer ${tokenOf(subject.user)}` };
  if (endpoint === 'graphql') {
    const body = JSON.stringify({ query: workload.document, variables: workload.variables?.(subject) });
    return { method: 'POST', path: '/graphql', headers: { ...authorization, ...json }, body };
  }
  const [method, path] = workload.rest(subject);
  return {
    method,
    path: `/api/v1${path}`,
    headers: { ...authorization, ...(method === 'POST' && json) },
    ...(method === 'POST' && { body: '{"isActive":true}' }),
  };
}

/** The token that `data.sql` gives the user. */
export function tokenOf(user: number): string {
  return `dvt_${String(user).padStart(43, '0')}`;
}

const users = 1000;

/** Picks a random user, and random rows of those that `data.sql` gives this user. */
export function pickSubject(random: () => number): Subject {
  const upTo = (limit: number) => Math.floor(random() * limit);
  const user = 1 + upTo(users);
  return { user, session: user + users * upTo(100), template: user + users * upTo(5) };
}
