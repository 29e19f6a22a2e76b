/** The address of the history that was shown last, to which a session links back. */

import { defaults, type HistoryAddress, hrefOf } from './address.ts';

let last = defaults;

export const remember = (address: HistoryAddress): void => {
  last = address;
};

export const lastHref = (): string => hrefOf(last);
