/**
 * The token of the user who has signed in. It is stored in the tab's `sessionStorage` and nowhere else, never in a URL;
 * signing out or closing the tab removes it. GraphiQL reads it when it is opened in the same tab (`explorer/main.ts`).
 */

import { home } from './paths.ts';

/** Another gateway may be below another path of the same origin. */
export const key = `dovetail-token ${home}`;

export const readToken = (): string | undefined => sessionStorage.getItem(key) ?? undefined;

export const storeToken = (token: string): void => sessionStorage.setItem(key, token);

export const forgetToken = (): void => sessionStorage.removeItem(key);
