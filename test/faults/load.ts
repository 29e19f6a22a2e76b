/** A steady load: reads by both APIs and activations, on connections that are kept, from outside. */

import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadAccount } from './accounts.ts';
import { ask, findFault, type Question, type Reply } from './asking.ts';

export interface Load {
  readonly replies: readonly Reply[];
  /** Whether every loop's latest reply since the time is a success. */
  isWellSince(time: number): boolean;
  /** Ends when nothing is in flight any more. */
  stop(): Promise<LoadReport>;
}

export interface LoadReport {
  readonly replies: readonly Reply[];
  /** Answers that were not the documented ones. */
  readonly faults: readonly string[];
  readonly acknowledged: number;
  /** Acknowledged activations that were not there afterwards. */
  readonly lost: number;
}

/** How long each loop rests after an answer, in milliseconds. */
const rest = 25;

const restPaths = ({ sessions }: LoadAccount) => [
  '/dtt/templates',
  '/dtt/sessions?limit=10',
  `/dtt/sessions/${sessions[0]}`,
  '/users/me',
];
const queries = [
  '{ viewer { username } dttTemplates(first: 3) { nodes { name isActive } } }',
  '{ dttSessions(first: 5) { totalCount nodes { name segments { type points } } } }',
];

/** How many were activated from the one to the other, which are activated in turn. */
function distance(templates: readonly number[], from: number | undefined, to: number | undefined): number {
  if (to === undefined) return 0;
  const [first, last] = [from, to].map((id) => templates.indexOf(id ?? Number.NaN));
  if (first === undefined || last === undefined || first === -1) return 1;
  return (last - first + templates.length) % templates.length;
}

export function startLoad(url: string, accounts: readonly LoadAccount[]): Load {
  const agent = new Agent({ keepAlive: true });
  const replies: Reply[] = [];
  const faults = new Set<string>();
  const latest = new Map<string, Reply>();
  let stopping = false;
  /** For a gateway that does not recover. */
  let abandoned = false;
  let acknowledged = 0;
  let lost = 0;

  async function put(loop: string, question: Question): Promise<Reply> {
    const reply = await ask(url, agent, question);
    replies.push(reply);
    latest.set(loop, reply);
    const fault = findFault(question, reply);
    if (fault !== undefined) faults.add(fault);
    return reply;
  }

  async function read(endpoint: 'REST' | 'GraphQL', account: LoadAccount): Promise<void> {
    const { token } = account;
    const questions: Question[] =
      endpoint === 'REST'
        ? restPaths(account).map((path) => ({ method: 'GET', path: `/api/v1${path}`, token }))
        : queries.map((query) => ({
            method: 'POST',
            path: '/graphql',
            token,
            body: JSON.stringify({ query }),
          }));
    for (let turn = 0; !stopping; turn++) {
      const question = questions[turn % questions.length];
      if (question) await put(`${endpoint} of ${account.userId}`, question);
      await sleep(rest);
    }
  }

  /** One after the other, so that which was the last is no question. */
  async function activate({ userId, token, templates }: LoadAccount): Promise<void> {
    const loop = `activations of ${userId}`;
    const active: Question = { method: 'GET', path: '/api/v1/dtt/templates/active', token };
    let last: number | undefined;
    for (let turn = 0; !stopping; turn++) {
      const template = templates[turn % templates.length];
      const { outcome } = await put(loop, {
        method: 'POST',
        path: `/api/v1/dtt/templates/${template}`,
        token,
        body: '{"isActive":true}',
      });
      if (outcome === '200') {
        acknowledged++;
        last = template;
      } else {
        // As soon as anybody can say: is it still the last that was acknowledged, or the one that may have been made?
        let reply = await put(loop, active);
        while (reply.outcome !== '200' && !abandoned) {
          await sleep(rest);
          reply = await put(loop, active);
        }
        if (abandoned) return;
        const found = JSON.parse(reply.body).data?.id;
        if (found !== template) lost += distance(templates, found, last);
        last = found;
      }
      await sleep(rest);
    }
    const { outcome, body } = await put(loop, active);
    lost += outcome === '200' ? distance(templates, JSON.parse(body).data?.id, last) : 1;
  }

  const loops = accounts.flatMap((account) => [
    read('REST', account),
    read('GraphQL', account),
    activate(account),
  ]);
  return {
    replies,
    isWellSince: (time) =>
      latest.size === loops.length &&
      [...latest.values()].every(({ outcome, began }) => outcome === '200' && began > time),
    async stop() {
      stopping = true;
      const abandon = setTimeout(() => {
        abandoned = true;
      }, 10_000);
      await Promise.all(loops);
      clearTimeout(abandon);
      agent.destroy();
      return { replies, faults: [...faults], acknowledged, lost };
    },
  };
}
