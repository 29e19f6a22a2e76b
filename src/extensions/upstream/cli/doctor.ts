/** The check of the upstream. */

import { errorText } from '../../../errors.ts';
import type { Found } from '../../../extensionPoints.ts';
import { createUpstream, Unauthorized } from '../client/upstream.ts';

/** How long, in milliseconds, the check waits for the upstream. */
const timeout = 5_000;

export async function checkUpstream(base: string, token: string | undefined): Promise<Found> {
  // Without UPSTREAM_TOKEN, each client sends the token of its own account. A rejected token shows as well that the upstream responds.
  const upstream = createUpstream({ base, token: token ?? 'doctor', timing: { timeout, retries: 0 } });
  try {
    await upstream.get('/users/me');
    return `${upstream.base} responds, and accepts the token`;
  } catch (error) {
    if (token === undefined && error instanceof Unauthorized)
      return `${upstream.base} responds; clients bring tokens of it`;
    const advice = 'Correct UPSTREAM_URL and UPSTREAM_TOKEN, or try again later.';
    return { says: errorText(error), advice };
  }
}
