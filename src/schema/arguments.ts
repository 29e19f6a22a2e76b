/** Arguments that many fields share. */

import { builder } from './builder.ts';

/** Names one record by the integer of the REST interface. */
export const recordArguments = builder.args((t) => ({
  databaseId: t.int({ required: true, description: 'The integer id of the REST interface.' }),
}));

/** What lists take beside the arguments of every Relay connection. */
export const listArguments = builder.args((t) => ({
  offset: t.int({ description: 'How many records to skip. At least 0; not together with `last`.' }),
}));
