/** Tests of frontends with a normalised cache, the same for every client library. */

import { afterAll, beforeAll, beforeEach, describe, expect, it, type MockInstance, vi } from 'vitest';
import { WebSocket } from 'ws';
import { type Account, createAccount } from './accounts.ts';
import { openTestGateway, type TestGateway } from './gateway.ts';

/** A frontend with a client library, set up as docs/clients.md says. */
export interface Frontend {
  /** Reads the next page of sessions. @returns the names of all sessions of the list in the cache. */
  readPage(): Promise<readonly (string | null)[]>;
  readTemplates(): Promise<Templates | undefined>;
  /** The same from the cache alone. */
  templatesInCache(): Templates | undefined;
  activate(id: string): Promise<unknown>;
  /** Subscribes, so that the cache follows the changes of other clients. @returns a function that ends it. */
  follow(): () => void;
  codeOf(error: unknown): unknown;
}

/** The result of the query of the templates, as far as the tests use it. */
export type Templates = {
  readonly viewer?: {
    readonly activeDttTemplate?: { readonly id: string } | null;
    readonly dttTemplates?: { readonly nodes: readonly { id: string; isActive: boolean }[] } | null;
  } | null;
};

export interface Scene {
  readonly gateway: TestGateway;
  readonly url: string;
  readonly alice: Account;
  /** The global ids of her templates. The first is active when a test begins. */
  readonly ids: readonly [string, string, string];
  /** The names of the sessions that were passed, oldest first: more than two pages of 20. */
  readonly passed: readonly (string | null)[];
  /** The parameters of the HTTP requests since the test began. */
  readonly sent: () => Record<string, unknown>[];
  /** The transports of the subscriptions since the test began. */
  readonly transports: () => Promise<Set<string>>;
  /** Activates one of her templates in the database, without the frontend. */
  activateElsewhere(index: 0 | 1 | 2): Promise<unknown>;
}

let socketsOpened = 0;
/** Counts the WebSockets. Node has a WebSocket of its own since 22. */
const countedSocket = new Proxy(globalThis.WebSocket ?? WebSocket, {
  construct(socket, parameters) {
    socketsOpened += 1;
    return Reflect.construct(socket, parameters);
  },
});

/** The names of transports by the media types of their responses. */
const transportOf: Readonly<Record<string, string>> = {
  'text/event-stream': 'server-sent events',
  'multipart/mixed': 'multipart',
};

const globalId = (id: number) => Buffer.from(`DttTemplate:${id}`).toString('base64url');

/** Opens a gateway for the tests of a file, and records their requests. */
export function useScene(): () => Scene {
  let scene: Scene | undefined;
  let requests: MockInstance<typeof fetch>;
  const get = () => {
    if (!scene) throw new Error('the tests have not begun');
    return scene;
  };
  beforeAll(async () => {
    vi.stubGlobal('WebSocket', countedSocket);
    requests = vi.spyOn(globalThis, 'fetch');
    const gateway = await openTestGateway();
    const alice = await createAccount(gateway.database.client, 'alice');
    const [first, second, third] = alice.dttTemplates;
    scene = {
      gateway,
      url: `${gateway.url}/graphql`,
      alice,
      ids: [globalId(first), globalId(second), globalId(third)],
      passed: await addSessions(gateway, alice),
      async transports() {
        const responses = await Promise.all(requests.mock.results.map(({ value }) => value));
        const types = responses.map(({ headers }) => headers.get('Content-Type')?.split(';', 1)[0]);
        const streams = types.flatMap((type) => transportOf[type ?? ''] ?? []);
        return new Set(socketsOpened > 0 ? [...streams, 'a WebSocket'] : streams);
      },
      sent: () => requests.mock.calls.map(([url, init]) => parametersOf(String(url), init)),
      activateElsewhere: (index) =>
        gateway.database.client.user.update({
          where: { id: alice.userId },
          data: { activeTemplateId: alice.dttTemplates[index] },
        }),
    };
  });
  beforeEach(async () => {
    await get().activateElsewhere(0);
    requests.mockClear();
    socketsOpened = 0;
  });
  afterAll(async () => {
    requests.mockRestore();
    vi.unstubAllGlobals();
    await scene?.gateway.close();
  });
  return get;
}

export interface FrontendKind {
  readonly client: string;
  /** The name of its mutation. */
  readonly activation: string;
  /** Whether it sends hashes in place of queries. */
  readonly persists: boolean;
  /** The transports of its subscriptions; the first is the default. */
  readonly transports: readonly string[];
  open(url: string, token: string, transport?: string): Frontend;
}

/** The tests of a frontend. */
export function describeFrontend(kind: FrontendKind, scene: () => Scene): void {
  const open = (transport?: string) => kind.open(scene().url, scene().alice.token, transport);

  describe(kind.client, () => {
    it('joins three pages of a filtered and sorted list in the cache', async () => {
      const frontend = open();
      const { passed } = scene();
      expect(passed.length).toBeGreaterThan(40);
      for (const pages of [1, 2, 3]) expect(await frontend.readPage()).toEqual(passed.slice(0, 20 * pages));
    });

    it('has exactly one active template in the cache after an activation, without another query', async () => {
      const frontend = open();
      const { ids, sent } = scene();
      expect(activeOf(await frontend.readTemplates())).toEqual([ids[0], ids[0]]);
      const sentBefore = sent().length;
      await frontend.activate(ids[1]);
      expect(activeOf(frontend.templatesInCache())).toEqual([ids[1], ids[1]]);
      expect(
        new Set(
          sent()
            .slice(sentBefore)
            .map(({ operationName }) => operationName),
        ),
      ).toEqual(new Set([kind.activation]));
    });

    it.each(kind.transports)(
      'updates the cache after an activation by another client, over %s',
      async (transport) => {
        const frontend = open(transport);
        const { ids, activateElsewhere, transports } = scene();
        await frontend.readTemplates();
        const stop = frontend.follow();
        await activateElsewhere(2);
        await expect
          .poll(() => activeOf(frontend.templatesInCache()), { timeout: 20_000 })
          .toEqual([ids[2], ids[2]]);
        expect(await transports()).toEqual(new Set([transport]));
        stop();
      },
    );

    if (kind.persists)
      it('sends the text of a query once, and its hash from then on', async () => {
        const { sent } = scene();
        await open().readTemplates();
        const first = sent().length;
        expect(activeOf(await open().readTemplates())).toHaveLength(2);
        expect(
          sent()
            .slice(first)
            .map(({ query }) => query),
        ).toEqual([undefined]);
      });

    it('returns the codes of errors', async () => {
      const { ids, url } = scene();
      const missing = await open()
        .activate(globalId(999))
        .catch((error) => error);
      const unknown = kind.open(url, 'nobody');
      const rejected = await unknown.activate(ids[1]).catch((error) => error);
      expect([missing, rejected].map(unknown.codeOf)).toEqual(['NOT_FOUND', 'UNAUTHENTICATED']);
    });
  });
}

/** The ids of the active templates: by the viewer's `activeDttTemplate`, and by `isActive` of each template. */
function activeOf(templates: Templates | undefined): (string | undefined)[] {
  const { activeDttTemplate, dttTemplates } = templates?.viewer ?? {};
  const active = dttTemplates?.nodes.filter(({ isActive }) => isActive) ?? [];
  return [activeDttTemplate?.id, ...active.map(({ id }) => id)];
}

/** Creates sessions. @returns the names of those that were passed, oldest first. */
async function addSessions({ database }: TestGateway, alice: Account): Promise<(string | null)[]> {
  await database.client.dttSession.createMany({
    data: Array.from({ length: 60 }, (_, index) => ({
      ownerId: alice.userId,
      trainerId: alice.dttDevices[0],
      bubbleId: `alice-many-${index}`,
      name: `Session ${index}`,
      passed: index % 4 === 0 ? null : true,
      createdAt: new Date(Date.UTC(2026, 1, 1, index)),
    })),
  });
  const rows = await database.client.dttSession.findMany({
    where: { ownerId: alice.userId, passed: true },
    orderBy: { createdAt: 'asc' },
  });
  return rows.map(({ name }) => name);
}

function parametersOf(url: string, init: RequestInit | undefined): Record<string, unknown> {
  return init?.body ? JSON.parse(String(init.body)) : Object.fromEntries(new URL(url).searchParams);
}
