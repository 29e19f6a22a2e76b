/** The views of the console. The tests of the console go through all of them. */

export interface ConsoleView {
  readonly path: string;
  readonly title: string | RegExp;
  /** Text of the demo account that the view shows. */
  readonly shows: string | RegExp;
}

/** Every view by the name that its files have, with what it shows of the demo account. */
export const views = {
  overview: { path: '/console', title: 'Overview', shows: 'Beginner Program' },
  programs: { path: '/console/programs', title: 'Programs', shows: 'Coach’s Pick' },
  program: { path: '/console/programs/1', title: 'Beginner Program', shows: 'A gentle introduction' },
  history: { path: '/console/history', title: 'History', shows: 'Beginner Program' },
  session: { path: '/console/history/1', title: 'Session 60', shows: /repetition/i },
  locks: { path: '/console/locks', title: 'Locks', shows: 'Weekend Lock' },
  settings: { path: '/console/settings', title: 'Settings', shows: 'demo-token' },
  lock: { path: '/console/locks/1', title: 'Weekend Lock', shows: /locked/i },
} as const satisfies Record<string, ConsoleView>;
