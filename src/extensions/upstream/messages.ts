/** The messages that clients get about the upstream. */

export const messages = {
  upstreamAway: 'The upstream cannot be reached; nothing was changed here',
  accountArriving: 'The account is being read from the upstream',
  accountUnread:
    'This account has not been read from the upstream yet; it will be, once a request comes with a token of the upstream',
  accountOutdated:
    'What was written may have reached the upstream, but could not be read back from there yet; try again',
  accountUnreachable:
    'The account cannot be reached upstream without a token of the upstream; nothing was changed here',
  upstreamBusy: 'The upstream takes no more requests of this account for now; nothing was changed here',
  upstreamUnreachable: 'The upstream cannot be reached',
  upstreamTooSlow: 'The upstream did not respond in time',
  upstreamTooLarge: 'The response of the upstream is larger than 4 MiB',
  upstreamUnusable: 'The upstream rejected the request or sent what cannot be read; nothing was changed here',
  notFollowed: 'REST cannot be followed in front of another service; use a subscription of GraphQL',
} as const;
