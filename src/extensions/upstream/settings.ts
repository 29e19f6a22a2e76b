/** The settings of a gateway in front of an upstream. */

import { z } from 'zod';
import { type Config, readConfig, type SettingsGroup } from '../../config/config.ts';
import type { Environment } from '../../config/environment.ts';
import { integerSetting, setting, type ValuesOf } from '../../config/setting.ts';

export const settings = {
  UPSTREAM_URL: setting(
    'base URL of a service that speaks the REST interface: REST requests go there, and the database mirrors its accounts for GraphQL',
    'a URL without user, query or fragment, such as https://example.com/api/v1',
    z
      .url({ protocol: /^https?$/ })
      .regex(/^[^@?#]*$/)
      .transform((url) => url.replace(/\/+$/, ''))
      .optional(),
  ),
  UPSTREAM_TOKEN: {
    ...setting(
      'API token for UPSTREAM_URL: the one account to mirror; unset, clients bring tokens of their own',
      'a token: visible ASCII characters',
      z
        .string()
        .regex(/^[!-~]+$/)
        .optional(),
    ),
    secret: true,
  },
  UPSTREAM_INTERVAL: integerSetting(
    'seconds from one refresh of a mirrored account to the next, and for which a REST response is fresh unless the upstream says so',
    [1, 86_400],
    60,
  ),
  UPSTREAM_RATE: integerSetting(
    'requests a minute that the upstream allows for an account; 0 for no limit',
    [0, 1_000_000],
    60,
  ),
};

export const settingsGroup = {
  settings,
  requires: {
    UPSTREAM_TOKEN: 'UPSTREAM_URL',
    UPSTREAM_INTERVAL: 'UPSTREAM_URL',
    UPSTREAM_RATE: 'UPSTREAM_URL',
  },
} satisfies SettingsGroup;

export type UpstreamConfig = Config & ValuesOf<typeof settings>;

/** Reads the settings of the core and of the upstream, for commands. */
export function readUpstreamConfig(env: Environment): UpstreamConfig {
  // The result has the values of the group as well.
  return readConfig(env, [settingsGroup]) as UpstreamConfig;
}
