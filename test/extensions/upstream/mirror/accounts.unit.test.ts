/** What the accounts of a gateway share: what is logged of the upstream. */

import { pino } from 'pino';
import { expect, it } from 'vitest';
import { UpstreamError } from '../../../../src/extensions/upstream/client/upstream.ts';
import { createRunLog } from '../../../../src/extensions/upstream/mirror/accounts.ts';

it('an unavailable upstream is logged once, however many requests fail, and again when it fails in another way', () => {
  const lines: string[] = [];
  const log = createRunLog(pino({}, { write: (line: string) => void lines.push(line) }));
  for (let times = 0; times < 400; times++)
    log.fail(new UpstreamError('no', { failure: 'responded with 503' }));
  expect(lines).toHaveLength(1);
  log.fail(new UpstreamError('no', { failure: 'cannot be reached' }));
  expect(lines).toHaveLength(2);
  expect(log.status()).toContain('cannot be reached');
});
