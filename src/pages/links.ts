/** What can be opened in a browser, and the header that links to it. */

import { type Config, hasConsole } from '../config/config.ts';

export type PageSettings = Pick<
  Config,
  'CONSOLE' | 'GRAPHIQL' | 'INTROSPECTION' | 'PERSISTED_OPERATIONS' | 'PUBLIC_URL'
>;

/** Whether GraphiQL has anything to send: with "only" the gateway runs no query that is typed. */
export const hasGraphiql = ({ GRAPHIQL, PERSISTED_OPERATIONS }: PageSettings): boolean =>
  GRAPHIQL === 'on' && PERSISTED_OPERATIONS !== 'only';

export const hasReferences = ({ INTROSPECTION }: PageSettings): boolean => INTROSPECTION === 'on';

interface Link {
  readonly path: string;
  readonly name: string;
  readonly what: string;
  /** Whether the settings allow it; without this it is always there. */
  readonly when?: (settings: PageSettings) => boolean;
}

/** The pages for people. The header of every page links to them. */
export const pages: readonly Link[] = [
  { path: '/console', name: 'Console', what: 'devices, programs, history and locks, live', when: hasConsole },
  { path: '/graphql', name: 'GraphiQL', what: 'queries with examples and completion', when: hasGraphiql },
  { path: '/schema', name: 'Schema', what: 'every query and type, with examples', when: hasReferences },
  { path: '/docs', name: 'REST', what: 'every route, to read and to try', when: hasReferences },
  { path: '/guides', name: 'Guides', what: 'how to use it and how to run it, with a search' },
];

/** Everything that can be opened. The probes are for programs, rather than for people. */
export const allLinks: readonly Link[] = [
  ...pages,
  { path: '/schema.graphql', name: 'GraphQL schema', what: 'for code generators', when: hasReferences },
  {
    path: '/openapi.json',
    name: 'OpenAPI',
    what: 'the REST routes for code generators',
    when: hasReferences,
  },
  { path: '/healthz', name: 'Health', what: 'whether the process is alive' },
  { path: '/readyz', name: 'Readiness', what: 'whether the database can be reached' },
];

/** Those links that the settings allow. */
export const linksFor = (settings: PageSettings, links = allLinks) =>
  links.filter(({ when }) => when?.(settings) ?? true);

/**
 * The way from a page to the home page, such as `../`. Links begin with it: a proxy may serve the gateway below a path of its own, which only
 * the browser knows. Clients can ask for any path, so deep ones get a way that ends at some depth.
 */
export const homeFrom = (path: string): string =>
  '../'.repeat(Math.min(path.split('/').length - 2, 30)) || './';

/** The links as the items of a list, in HTML. @param home the way to the home page. */
export const linkItems = (links: readonly Link[], home: string): string =>
  links
    .map(({ path, name, what }) => `<li><a href="${home}${path.slice(1)}">${name}</a>: ${what}</li>`)
    .join('\n');

/** `theme.js` applies the choice. */
const themeChoice = `<select name="theme" aria-label="Theme" title="Theme">
<option value="">System</option><option value="light">Light</option><option value="dark">Dark</option>
</select>`;

/** The header of a page, in HTML. @param current the path of that page. */
export function headerFor(settings: PageSettings, current: string): string {
  const home = homeFrom(current);
  const isIn = (path: string) => path === current || current.startsWith(`${path}/`);
  const marked = (path: string) =>
    `href="${home}${path.slice(1)}"${isIn(path) ? ' aria-current="page"' : ''}`;
  const links = linksFor(settings, pages).map(({ path, name }) => `<a ${marked(path)}>${name}</a>`);
  return `<header>\n<a class="name" ${marked('/')}>Dovetail</a>\n<nav aria-label="Pages">${links.join('')}</nav>\n${themeChoice}\n</header>`;
}
