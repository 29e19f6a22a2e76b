/**
 * Who is signed in in this tab: a token, in `sessionStorage` and nowhere else. It is never part of an address, and closing the
 * tab or signing out forgets it. GraphiQL reads it, opened in the same tab (`src/graphql/explorer.ts`).
 */

const key = 'dovetail-token';

export const readToken = (): string | undefined => sessionStorage.getItem(key) ?? undefined;

export const storeToken = (token: string): void => sessionStorage.setItem(key, token);

export const forgetToken = (): void => sessionStorage.removeItem(key);
