/** How arguments of commands are read. */

import { InvalidArgumentError } from 'commander';
import { readId } from '../database/ids.ts';

/** Reads an argument that is the id of a record. */
export function parseId(text: string): number {
  const id = readId(text);
  if (id === undefined) throw new InvalidArgumentError('It takes a number such as 7.');
  return id;
}
