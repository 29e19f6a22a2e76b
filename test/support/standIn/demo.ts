/** The accounts of `npm run demo:upstream`, and what it prints. */

import { createStandIn, type StandIn } from './standIn.ts';

export interface DemoOptions {
  /** The number of training sessions of each account. */
  readonly sessions: number;
  /** Requests a minute for each account. */
  readonly rate: number;
  readonly port: number;
}

const tokens = { alice: 'token-of-alice', bob: 'token-of-bob' } as const;

/** Alice and Bob are linked, and each has imported a template of the other. Alice is locked. */
export function startDemo({ sessions, rate, port }: DemoOptions): Promise<StandIn> {
  const size = { sessions, segmentsOfSession: 5 };
  return createStandIn({
    rate,
    port,
    accounts: [
      { id: 1, username: 'alice', tokens: [tokens.alice], size, linked: [2], locked: true },
      { id: 2, username: 'bob', tokens: [tokens.bob], size, linked: [1] },
    ],
  });
}

/** A text that says what the stand-in has, and what to run next. */
export function tellDemo({ base }: StandIn, { sessions, rate }: DemoOptions): string {
  const authorization = `-H 'Authorization: Bearer ${tokens.alice}'`;
  return `A stand-in for the live service, at ${base} until you press Ctrl+C.
It allows each account ${rate} requests a minute, and forgets everything when it ends.

  user    token              has
  alice   ${tokens.alice}     ${sessions} training sessions, and a lock that is under way
  bob     ${tokens.bob}       ${sessions} training sessions

In a second terminal, a gateway in front of it:

  UPSTREAM_URL=${base} DATA_DIR=mirror-of-demo npm start

In a third, the same account over REST and over GraphQL:

  curl 'localhost:4000/api/v1/dtt/sessions?limit=1' ${authorization}
  curl localhost:4000/graphql ${authorization} -H 'Content-Type: application/json' \\
    -d '{"query":"{ viewer { username dttSessions(first: 3) { totalCount nodes { name } } } }"}'

A write that only the service has, which the gateway passes on:

  curl -X PATCH localhost:4000/api/v1/dtt/templates/1 ${authorization} \\
    -H 'Content-Type: application/json' -d '{"name":"Another name"}'
`;
}
