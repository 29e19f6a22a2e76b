/** `npx tsx test/extensions/upstream/mirror/demo.ts`: a stand-in for the live service, to try the mirror without an account. */

import { parseArgs } from 'node:util';
import { createStandIn } from '../support/standIn/standIn.ts';

const { values } = parseArgs({
  options: {
    /** The number of training sessions of each account. */
    sessions: { type: 'string', default: '60' },
    /** Requests a minute for each account. */
    rate: { type: 'string', default: '60' },
    port: { type: 'string', default: '4100' },
  },
});
const { sessions, rate } = values;
const [alice, bob] = ['token-of-alice', 'token-of-bob'];
const size = { sessions: Number(sessions), segmentsOfSession: 5 };
// Each has imported a template of the other. Alice is locked.
const { base } = await createStandIn({
  rate: Number(rate),
  port: Number(values.port),
  accounts: [
    { id: 1, username: 'alice', tokens: [alice], size, locked: true },
    { id: 2, username: 'bob', tokens: [bob], size },
  ],
});
const authorization = `-H 'Authorization: Bearer ${alice}'`;
process.stdout.write(`A stand-in for the live service, at ${base} until you press Ctrl+C.
It allows each account ${rate} requests a minute, and forgets everything when it ends.

  user    token              has
  alice   ${alice}     ${sessions} training sessions, and a lock that is under way
  bob     ${bob}       ${sessions} training sessions

In a second terminal, a gateway in front of it:

  UPSTREAM_URL=${base} DATA_DIR=mirror-of-demo npm start

In a third, the same account over REST and over GraphQL:

  curl 'localhost:4000/api/v1/dtt/sessions?limit=1' ${authorization}
  curl localhost:4000/graphql ${authorization} -H 'Content-Type: application/json' \\
    -d '{"query":"{ viewer { username dttSessions(first: 3) { totalCount nodes { name } } } }"}'

A write that only the service has, which the gateway passes on:

  curl -X PATCH localhost:4000/api/v1/dtt/templates/1 ${authorization} \\
    -H 'Content-Type: application/json' -d '{"name":"Another name"}'
`);
