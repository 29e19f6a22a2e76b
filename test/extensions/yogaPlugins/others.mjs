/** Plugins from npm for the gateway of `others.slow.embedded.test.ts`: one counts the calls of resolvers, one changes each result, and one notes which documents it gets. */

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
