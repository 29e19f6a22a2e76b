/** `dovetail forget`: removes an account from a mirror, also while a gateway runs. */

import { withDatabase } from '../../../cli/database.ts';
import { printJson, say } from '../../../cli/output.ts';
import { override } from '../../../config/environment.ts';
import { forgetAccount, printable } from '../mirror/forget.ts';
import { readUpstreamConfig } from '../settings.ts';

interface ForgetFlags {
  readonly user?: string | undefined;
  readonly id?: number | undefined;
  readonly json?: true | undefined;
}

/** @param flags either `user` or `id` is set. */
export function runForget({ user, id, json }: ForgetFlags): Promise<void> {
  // A shell may still have the token for `sync --from`, but without UPSTREAM_URL it is an error.
  const config = readUpstreamConfig(override(process.env, { UPSTREAM_TOKEN: undefined }));
  return withDatabase(config, async ({ pool }) => {
    const forgotten = await forgetAccount(pool, id === undefined ? { username: user ?? '' } : { id });
    const { username, left } = forgotten;
    const shared = left === 0 ? '' : ` Others keep ${left} of its templates, which they have imported.`;
    say(`Removed the account ${printable(username)} (id ${forgotten.id}).${shared}`);
    if (json) printJson(forgotten);
  });
}
