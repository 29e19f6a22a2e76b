/** The audits of graphql-http, which check a server against the specification of GraphQL over HTTP. */

import { type Audit, serverAudits } from 'graphql-http';
import { expect, it } from 'vitest';
import { gatewayWith } from '../support/setUp.ts';

const { gateway, alice } = await gatewayWith(['alice']);

const audits = serverAudits({
  url: () => `${gateway.url}/graphql`,
  fetchFn: (input: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers);
    headers.set('Authorization', `Bearer ${alice.token}`);
    return fetch(input, { ...init, headers });
  },
});

// Twice, since a repeated operation is compiled.
it.each(audits.map((audit: Audit): [string, string, Audit] => [audit.id, audit.name, audit]))(
  'the GraphQL endpoint passes the audit %s: %s',
  async (_id, _name, audit) => {
    for (const run of ['first run', 'second run']) {
      const result = await audit.fn();
      const reason = 'reason' in result ? result.reason : undefined;
      expect({ status: result.status, reason }, run).toEqual({ status: 'ok', reason: undefined });
    }
  },
);
