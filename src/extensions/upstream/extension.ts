/**
 * In front of a service that speaks the REST interface: REST is a caching proxy of it, and the database mirrors its accounts for
 * GraphQL.
 */

import type { Extension } from '../../extensionPoints.ts';
import { forgetCommand, syncCommand } from './cli/commands.ts';
import { type settings, settingsGroup } from './settings.ts';

export const upstream: Extension<typeof settings> = {
  ...settingsGroup,
  owner: {
    table: 'Mirror',
    rejection:
      'This database mirrors accounts that live elsewhere, which is all that it may have: name another database in DATABASE_URL or DATA_DIR.',
    note: 'This is a mirror, whose accounts come from the upstream.',
    arrival: [': an account comes to a mirror with its first request, or by', 'sync'],
  },
  commands: () => [syncCommand, forgetCommand],

  checks: ({ UPSTREAM_URL: base, UPSTREAM_TOKEN: token }) =>
    base === undefined
      ? []
      : [['upstream', async () => (await import('./cli/doctor.ts')).checkUpstream(base, token)]],

  accounts({ UPSTREAM_URL: base, UPSTREAM_TOKEN: token }) {
    if (base === undefined) return undefined;
    const isConfigured = token !== undefined;
    return {
      clients: isConfigured
        ? undefined
        : (url) => `Clients of ${base} keep their tokens, and ask here instead: ${url}/api/v1`,
      arriving: `The account of ${base} is being mirrored. A token for it, once the log says "mirror in step":`,
      use: isConfigured ? '' : 'Use the token that you have for the service behind this gateway. ',
    };
  },

  async open(config, gateway) {
    const { UPSTREAM_URL } = config;
    if (UPSTREAM_URL === undefined) return undefined;
    const { openUpstream } = await import('./hooks.ts');
    return openUpstream({ ...config, UPSTREAM_URL }, gateway);
  },
};
