/** Global ids, by which Relay and other clients identify records of any type. */

import { readId } from '../database/ids.ts';
import { argumentError } from '../errors.ts';
import { isModel, type Model } from './loading/visible.ts';

/** A decoded global id. */
export interface GlobalId {
  readonly typename: Model;
  readonly id: number;
}

export const writeGlobalId = (typename: string, id: string | number | bigint): string =>
  Buffer.from(`${typename}:${id}`).toString('base64url');

/** @throws a client error about the argument for a text that `writeGlobalId` cannot have written. */
export function readGlobalId(text: string, argument: string): GlobalId {
  const [, typename = '', digits = ''] =
    /^(\w+):(\d+)$/.exec(Buffer.from(text, 'base64url').toString()) ?? [];
  const id = readId(digits);
  if (id === undefined || !isModel(typename)) {
    const quoted = JSON.stringify(text.slice(0, 64));
    throw argumentError(argument, `${quoted} is not a global id of this schema`);
  }
  return { typename, id };
}
