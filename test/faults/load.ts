/** A steady load from outside the gateway: reads by both APIs and activations, on persistent connections. */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { openClient } from '../../src/database/client.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import { findUndocumented, type Reply, type Request, sendRequest } from './requests.ts';

export type LoadReport = Awaited<ReturnType<ReturnType<typeof startLoad>['stop']>>;

export interface LoadAccount extends Pick<Account, 'userId' | 'token' | 'dttSessions'> {
  /** More than are activated during a fault, so that the number of lost activations can be determined. */
  readonly templates: readonly number[];
}

/** Adds accounts to a migrated database. */
export async function addAccounts(connection: pg.PoolConfig): Promise<LoadAccount[]> {
  const pool = new pg.Pool(connection);
  const accounts: LoadAccount[] = [];
  for (const name of ['one', 'two', 'three']) {
    const account = await createAccount(openClient(pool), name);
    const { rows } = await pool.query<{ id: number }>(
      `INSERT INTO "DttTemplate" ("ownerId", "bubbleId", name, "targetDepth", "targetWindow")
       SELECT $1, gen_random_uuid(), 'Template ' || i, 50, 10 FROM generate_series(1, 20) i RETURNING id`,
      [account.userId],
    );
    accounts.push({ ...account, templates: rows.map(({ id }) => id) });
  }
  await pool.end();
  return accounts;
}

/** In milliseconds: the pause of each loop after a response. */
const pause = 25;

/** The reads of an account, by either API. */
const readsOf = ({ token, dttSessions }: LoadAccount): Readonly<Record<string, readonly Request[]>> => ({
  REST: ['/dtt/templates', '/dtt/sessions?limit=10', `/dtt/sessions/${dttSessions[0]}`, '/users/me'].map(
    (path) => ({ method: 'GET', path: `/api/v1${path}`, token }),
  ),
  GraphQL: [
    '{ viewer { username } dttTemplates(first: 3) { nodes { name isActive } } }',
    '{ dttSessions(first: 5) { totalCount nodes { name segments { type points } } } }',
  ].map((query) => ({ method: 'POST', path: '/graphql', token, body: JSON.stringify({ query }) })),
});

/** How many activations lie between the two templates, which are activated in turn. */
function distance(templates: readonly number[], from: number | undefined, to: number | undefined): number {
  if (to === undefined) return 0;
  const [first, last] = [from, to].map((id) => templates.indexOf(id ?? Number.NaN));
  if (first === undefined || last === undefined || first === -1) return 1;
  return (last - first + templates.length) % templates.length;
}

export function startLoad(url: string, accounts: readonly LoadAccount[]) {
  const replies: Reply[] = [];
  /** Error responses that are not the documented ones. */
  const undocumented = new Set<string>();
  const latest = new Map<string, Reply>();
  let stopping = false;
  /** Set when the gateway does not recover. */
  let abandoned = false;
  let acknowledged = 0;
  /** How many acknowledged activations were not in the database afterwards. */
  let lost = 0;

  async function send(loop: string, request: Request): Promise<Reply> {
    const reply = await sendRequest(url, request);
    replies.push(reply);
    latest.set(loop, reply);
    const problem = findUndocumented(request, reply);
    if (problem !== undefined) undocumented.add(problem);
    return reply;
  }

  async function read(loop: string, requests: readonly Request[]): Promise<void> {
    for (let turn = 0; !stopping; turn++) {
      const request = requests[turn % requests.length];
      if (request) await send(loop, request);
      await sleep(pause);
    }
  }

  /** Activates templates one after the other, so that it is certain which was the last. */
  async function activate({ userId, token, templates }: LoadAccount): Promise<void> {
    const loop = `activations of ${userId}`;
    const readActive: Request = { method: 'GET', path: '/api/v1/dtt/templates/active', token };
    let last: number | undefined;
    for (let turn = 0; !stopping; turn++) {
      const template = templates[turn % templates.length];
      const { outcome } = await send(loop, {
        method: 'POST',
        path: `/api/v1/dtt/templates/${template}`,
        token,
        body: '{"isActive":true}',
      });
      if (outcome === '200') {
        acknowledged++;
        last = template;
      } else {
        // Reads, as soon as the gateway responds, whether the active template is still the last that was acknowledged, or the
        // one whose activation may have been committed without a response.
        let reply = await send(loop, readActive);
        while (reply.outcome !== '200' && !abandoned) {
          await sleep(pause);
          reply = await send(loop, readActive);
        }
        if (abandoned) return;
        const found = JSON.parse(reply.body).data?.id;
        if (found !== template) lost += distance(templates, found, last);
        last = found;
      }
      await sleep(pause);
    }
    const { outcome, body } = await send(loop, readActive);
    lost += outcome === '200' ? distance(templates, JSON.parse(body).data?.id, last) : 1;
  }

  const loops = accounts.flatMap((account) => [
    ...Object.entries(readsOf(account)).map(([api, reads]) => read(`${api} of ${account.userId}`, reads)),
    activate(account),
  ]);
  return {
    /** Whether the latest request of every loop was sent after the time and succeeded. */
    succeedsSince: (time: number) =>
      latest.size === loops.length &&
      [...latest.values()].every(({ outcome, began }) => outcome === '200' && began > time),
    /** Stops sending requests, and waits for the responses. */
    async stop() {
      stopping = true;
      const abandon = setTimeout(() => {
        abandoned = true;
      }, 10_000);
      await Promise.all(loops);
      clearTimeout(abandon);
      return { replies, undocumented: [...undocumented], acknowledged, lost };
    },
  };
}
