/** What can be opened in a browser, and the header that links to it. */

import { type Config, hasConsole } from '../config/config.ts';

export type PageSettings = Pick<Config, 'CONSOLE' | 'GRAPHIQL' | 'INTROSPECTION' | 'PERSISTED_OPERATIONS'>;

/** Whether GraphiQL has anything to send: with "only" the gateway runs no query that is typed. */
export const hasGraphiql = ({ GRAPHIQL, PERSISTED_OPERATIONS }: PageSettings): boolean =>
  GRAPHIQL === 'on' && PERSISTED_OPERATIONS !== 'only';

const hasReferences = ({ INTROSPECTION }: PageSettings): boolean => INTROSPECTION === 'on';

interface Link {
  readonly path: string;
  readonly name: string;
  readonly what: string;
  /** Whether the settings allow it; without this it is always there. */
  readonly isThere?: (settings: PageSettings) => boolean;
}

/** The pages for people. The header of every page links to them. */
export const pages: readonly Link[] = [
  {
    path: '/console',
    name: 'Console',
    what: 'devices, programs, history and locks, live',
    isThere: hasConsole,
  },
  {
    path: '/graphql',
    name: 'GraphiQL',
    what: 'queries with examples, docs and completion',
    isThere: hasGraphiql,
  },
  {
    path: '/schema',
    name: 'Schema',
    what: 'every query and type of GraphQL, with examples',
    isThere: hasReferences,
  },
  { path: '/docs', name: 'REST', what: 'every route, to read and to try', isThere: hasReferences },
];

/** Everything that can be opened. The probes are for programs, rather than for people. */
export const allLinks: readonly Link[] = [
  ...pages,
  {
    path: '/schema.graphql',
    name: 'GraphQL schema',
    what: 'all of GraphQL in one text, for code generators',
    isThere: hasReferences,
  },
  {
    path: '/openapi.json',
    name: 'OpenAPI',
    what: 'all of REST in one document, for code generators',
    isThere: hasReferences,
  },
  { path: '/healthz', name: 'Health', what: 'whether the process is alive' },
  { path: '/readyz', name: 'Readiness', what: 'whether the database can be reached' },
];

/** Those links that the settings allow. */
export const linksFor = (settings: PageSettings, links = allLinks) =>
  links.filter(({ isThere }) => isThere?.(settings) ?? true);

/** The links as the items of a list, in HTML. */
export const listOf = (links: readonly Link[]): string =>
  links.map(({ path, name, what }) => `<li><a href="${path}">${name}</a>: ${what}</li>`).join('\n');

/** The header of a page, in HTML. @param current the path of that page. */
export function headerFor(settings: PageSettings, current?: string): string {
  const link = (path: string, content: string, name = '') =>
    `<a${name} href="${path}"${path === current ? ' aria-current="page"' : ''}>${content}</a>`;
  const links = linksFor(settings, pages).map(({ path, name }) => link(path, name));
  return `<header>
${link('/', `Dovetail`, ' class="name"')}
<nav aria-label="Pages">${links.join('')}</nav>
</header>`;
}
