/** What pages, and the text of a start, say about how people get accounts. Extensions bring these texts. */

/** Accounts that live elsewhere, in words. */
export interface AccountsElsewhere {
  /** For a start: how clients use the gateway, if they have tokens already. */
  readonly clients?: ((url: string) => string) | undefined;
  /** For a start, while no account is here. */
  readonly arriving: string;
  /** For the home page, before the command that creates a token. */
  readonly use: string;
}

/** A command that gives a database without accounts one, in words: for a start. */
export interface Starter {
  readonly command: string;
  readonly offer: string;
}
