/**
 * Plugins for the gateway of `others.slow.embedded.test.ts`: one notes each document that it gets, and two from npm count the calls of
 * resolvers and change each result.
 */

import { appendFileSync } from 'node:fs';
import { useOnResolve } from '@envelop/on-resolve';
import { useResponseCache } from '@envelop/response-cache';

export default [
  { onParse: () => appendFileSync(process.env.RESOLVED_FILE, 'parsed\n') },
  useOnResolve(({ info }) => {
    appendFileSync(process.env.RESOLVED_FILE, `${info.parentType.name}.${info.fieldName}\n`);
  }),
  useResponseCache({ session: ({ viewer }) => String(viewer?.id), ttl: 0, includeExtensionMetadata: true }),
];
