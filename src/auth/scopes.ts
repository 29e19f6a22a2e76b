/** The scopes of tokens: what a token may do. Each scope includes the ones before it. */

export const scopes = ['read', 'activate', 'manage'] as const;

export type Scope = (typeof scopes)[number];

/**
 * The highest scope of a token, as the database has it. The demo token has `manage_on_loopback`: it is `manage` for requests from the
 * machine itself, and `activate` for all others.
 */
export type StoredScope = Scope | 'manage_on_loopback';

/** The scope that a token has for requests from other machines. */
export const remoteScope = (stored: StoredScope): Scope =>
  stored === 'manage_on_loopback' ? 'activate' : stored;

/** The scope that a token has for requests from the machine itself. */
export const localScope = (stored: StoredScope): Scope =>
  stored === 'manage_on_loopback' ? 'manage' : stored;

/** Whether a token of a scope may do what needs another one. */
export const allows = (scope: Scope, needed: Scope): boolean =>
  scopes.indexOf(scope) >= scopes.indexOf(needed);

/** The scope and all that it includes. */
export const includedIn = (scope: Scope): readonly Scope[] => scopes.slice(0, scopes.indexOf(scope) + 1);

/** The highest of some scopes; undefined for none. */
export const highestOf = (wanted: readonly Scope[]): Scope | undefined =>
  scopes.findLast((scope) => wanted.includes(scope));
