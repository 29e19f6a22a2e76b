/** How the history was shown last, so that one comes back to it from a session. */

import { defaults, type HistoryAddress, hrefOf } from './address.ts';

let last = defaults;

export const remember = (address: HistoryAddress): void => {
  last = address;
};

export const lastHref = (): string => hrefOf(last);
