/** The token of the demo account in each of the kept databases. */
export const keptToken = `dvt_${'A'.repeat(43)}`;
