/** Measures how long after a commit the subscriptions receive the change, with each of the two feeds. */

import { median } from './compare.ts';
import { type Feed, type FeedOptions, feeds, startListening, switchTo } from './feeds.ts';
import { type Listener, listen } from './listeners.ts';
import type { ServerProcess } from './processes.ts';
import type { Table } from './table.ts';
import { tokenOf } from './workloads.ts';

const subscriptions = 1_000;

/** Subscriptions, and a change that all of them receive. */
interface Scene {
  readonly title: string;
  readonly subscription: string;
  user(number: number): number;
  /** A statement that changes the data of all subscriptions, in one transaction. */
  readonly change: string;
  readonly listeners: number;
}

const activeTemplate = 'subscription { activeDttTemplate { name } }';
const changeActive = (which: string) =>
  `UPDATE "DttTemplate" SET name = left(name, 12) || txid_current() WHERE id IN (SELECT "activeTemplateId" FROM "User" WHERE ${which})`;

const scenes: readonly Scene[] = [
  {
    title: 'one subscription',
    subscription: activeTemplate,
    user: () => 1,
    change: changeActive('id = 1'),
    listeners: 1,
  },
  {
    title: '1,000 equal ones of one user',
    subscription: activeTemplate,
    user: () => 1,
    change: changeActive('id = 1'),
    listeners: subscriptions,
  },
  {
    title: '1,000 of as many users',
    subscription: activeTemplate,
    user: (number) => number,
    change: changeActive(`id <= ${subscriptions}`),
    listeners: subscriptions,
  },
];

export async function measureDelays(options: FeedOptions): Promise<Table[]> {
  const { quick, progress } = options;
  const [turns, commits] = quick ? [1, 30] : [4, 25];
  const measured = new Map<string, number[]>();
  for (let turn = 0; turn < turns; turn++) {
    for (const feed of turn % 2 === 0 ? feeds : [...feeds].reverse()) {
      await switchTo(options.database, feed);
      const gateway = await startListening(
        { ...options, env: { ...options.env, MAX_SUBSCRIPTIONS: String(subscriptions) } },
        feed,
      );
      try {
        for (const scene of scenes) {
          const key = keyOf(scene, feed);
          const times = await measureScene(options, gateway, scene, commits);
          measured.set(key, [...(measured.get(key) ?? []), ...times]);
        }
      } finally {
        await gateway.stop();
      }
      progress(`delays: ${feed}, turn ${turn + 1} of ${turns}`);
    }
  }
  const figures = (scene: Scene, feed: Feed) => {
    const times = (measured.get(keyOf(scene, feed)) ?? []).sort((one, other) => one - other);
    return [median(times).toFixed(1), (times[Math.ceil(times.length * 0.99) - 1] ?? Number.NaN).toFixed(1)];
  };
  return [
    {
      title: `from a commit to the last who waited for it, ms, over ${turns * commits} commits`,
      rows: [
        ['', 'NOTIFY, median', 'p99', 'logical, median', 'p99'],
        ...scenes.map((scene) => [scene.title, ...feeds.flatMap((feed) => figures(scene, feed))]),
      ],
    },
  ];
}

const keyOf = ({ title }: Scene, feed: Feed) => `${title}, ${feed}`;

/** Milliseconds from the response to each commit until the last subscription has received the change. */
async function measureScene(
  { database }: FeedOptions,
  gateway: ServerProcess,
  { subscription, user, change, listeners: count }: Scene,
  commits: number,
): Promise<number[]> {
  const listeners: Listener[] = [];
  try {
    for (let number = 1; number <= count; number++) {
      listeners.push(await listen(gateway, tokenOf(user(number)), subscription));
      // A few at a time, as clients come back after a restart.
      if (number % 50 === 0) await Promise.all(listeners.slice(-50).map(({ heard }) => heard(1)));
    }
    await Promise.all(listeners.map(({ heard }) => heard(1)));
    const times: number[] = [];
    // The first change warms up, and is not counted.
    for (let made = 0; made <= commits; made++) {
      await database.query(change);
      const committed = performance.now();
      const heard = await Promise.all(listeners.map((listener) => listener.heard(made + 2)));
      if (made > 0) times.push(Math.max(...heard) - committed);
    }
    return times;
  } finally {
    for (const { socket } of listeners) socket.destroy();
  }
}
