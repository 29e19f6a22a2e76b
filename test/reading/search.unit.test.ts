/** The search of the guides finds what operators, frontend developers and owners of REST clients look for. */

import { expect, it } from 'vitest';
import { openIndex, writeIndex } from '../../reading/find.ts';
import { renderGuides } from '../../reading/guides.ts';

const guides = renderGuides((file) => file);
const find = openIndex(writeIndex(guides.flatMap(({ sections }) => sections)));

it.each([
  // Operators
  ['connect to my own PostgreSQL', 'deployment#your-own-postgresql'],
  ['pgbouncer pooler', 'deployment#behind-pgbouncer'],
  ['read replica standby', 'deployment#standbys'],
  ['docker compose', 'deployment#containers'],
  ['TLS certificate of the database', 'configuration#tls'],
  ['password with special characters in DATABASE_URL', 'configuration#passwords-in-urls'],
  ['backup and restore', 'deployment#backups'],
  ['prometheus metrics', 'operations#metrics'],
  ['create a user on the command line', 'operations#users'],
  ['what does doctor check', 'operations#doctor'],
  ['nginx reverse proxy', 'deployment#behind-a-proxy'],
  ['upgrade to a new version', 'deployment#upgrading'],
  // Frontend developers
  ['CORS_ORIGINS', 'getting-started#a-page-of-yours'],
  ['urql cache', 'clients#urql'],
  ['apollo client subscription', 'clients#apollo-client'],
  ['generate typescript types', 'clients#graphql-code-generator'],
  ['websocket reconnect', 'transports#websocket'],
  ['filter a list by date', 'lists'],
  ['sessions per week chart statistics', 'lists#statistics'],
  ['pagination with a cursor', 'lists#cursors'],
  ['UNAUTHENTICATED error', 'errors#unauthenticated'],
  ['rate limit', 'errors#how-often'],
  ['what is DTT', 'getting-started#words'],
  // Owners of REST clients
  ['activate a template', 'rest#activation'],
  ['limit and offset', 'rest#paging'],
  ['null values and missing fields', 'rest#values'],
  ['if-none-match etag', 'rest#conditional-requests'],
  ['my existing client with the same token in front of a service', 'mirror'],
  ['deprecated fields', 'stability'],
  ['create and revoke a token', 'operations#tokens'],
  ['language model', 'tools#tools-for-language-models'],
])('"%s" is answered by %s, among the first three', (question, answer) => {
  const paths = find(question).map(({ path }) => path.replace('/guides/', ''));
  expect(paths.slice(0, 3)).toContain(answer);
});

it.each([
  ['cors', 'configuration#what-is-open-to-whom', 'CORS_ORIGINS'],
  ['port', 'configuration#where-it-listens', 'PORT'],
  ['filter', 'lists', 'filter'],
  ['pagination', 'rest#paging', 'page'],
])('the first answer to "%s" is %s, with the sentence that has the word', (question, answer, word) => {
  const [first] = find(question);
  expect(first?.path).toBe(`/guides/${answer}`);
  expect(first?.excerpt).toContain(word);
});

it('all of the links among guides lead to a guide and one of its headings, and no picture is missing', () => {
  const targets = new Set(
    guides.flatMap(({ path, html }) => [
      path,
      ...[...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => `${path}#${id}`),
    ]),
  );
  const links = guides.flatMap(({ path, html, contents }) =>
    [...(html + contents).matchAll(/<a href="(?!\w+:)([^"]*)"/g)].map(([, href = '']) => {
      const { pathname, hash } = new URL(href, `http://gateway${path}`);
      return pathname + hash;
    }),
  );
  expect(links.length).toBeGreaterThan(500);
  const others = ['/schema.graphql', '/openapi.json'];
  expect([...new Set(links)].filter((link) => !targets.has(link) && !others.includes(link))).toEqual([]);
});
