/** Plugins from npm for the gateway of `others.slow.embedded.test.ts`: one counts the calls of resolvers, one changes each result. */

import { appendFileSync } from 'node:fs';
import { useOnResolve } from '@envelop/on-resolve';
import { useResponseCache } from '@envelop/response-cache';

export default [
  useOnResolve(({ info }) => {
    appendFileSync(process.env.RESOLVED_FILE, `${info.parentType.name}.${info.fieldName}\n`);
  }),
  useResponseCache({ session: ({ viewer }) => String(viewer?.id), ttl: 0, includeExtensionMetadata: true }),
];
