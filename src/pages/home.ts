/** The first page: what runs here, links to everything, and the first requests to try. */

import { program } from '../config/config.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';
import { interfaceVersion, release } from '../version.ts';
import type { AccountsElsewhere } from './accounts.ts';
import { headerFor, linkItems, linksFor, type PageSettings } from './links.ts';
import { pageResponse } from './page.ts';
import { readTemplate } from './template.ts';

const versions = `Dovetail ${release}, with version ${interfaceVersion} of the REST interface`;

/** The request headers that the response depends on. */
const headers = { Vary: 'Authorization, Host, X-Forwarded-Proto' };

/**
 * Makes the page.
 * @param demoToken the token of the demo account, if there is one and the client may see it.
 * @param accounts set where accounts live elsewhere.
 */
export function homePage(
  exchange: Exchange,
  config: PageSettings,
  demoToken: string | undefined,
  accounts?: AccountsElsewhere,
): HttpResponse {
  const hasOnlyPersisted = config.PERSISTED_OPERATIONS === 'only';
  // The Host header of the client goes into the response, so only characters of a host are allowed.
  const { host = '', 'x-forwarded-proto': protocol } = exchange.request.headers;
  const name = /^[\w.:[\]-]+$/.test(host) ? host : 'localhost:4000';
  // Behind a proxy with TLS, an address without it would have curl send the token as plain text.
  const address = protocol === 'https' ? `https://${name}` : name;
  const requests = requestsTo(config.PUBLIC_URL ?? address, demoToken ?? 'YOUR_API_TOKEN');
  const commands = hasOnlyPersisted ? requests.slice(1) : requests;
  const createToken = `${program()} token create --user NAME --name first --scope manage`;
  const tokens: [says: string, code: string][] = [
    [
      `${accounts?.use ?? ''}A token for a user, who can create more with it in the console. Run it with the settings of the gateway:`,
      createToken,
    ],
  ];
  if (demoToken !== undefined) tokens.unshift(['The token of the demo account:', demoToken]);
  // No value has a character with a meaning in HTML.
  const page = template.fill({
    header: headerFor(config, '/'),
    links: linkItems(linksFor(config), './'),
    token: demoToken ?? '',
    versions,
    commands: commands.map(([says, command]) => copyable(says, command)).join('\n'),
    tokens: tokens.map(([says, code]) => copyable(says, code)).join('\n'),
  });
  const canAsk = demoToken !== undefined && !hasOnlyPersisted;
  const html = canAsk ? page : page.replace(/<!--demo-->.*<!--\/demo-->\s*/s, '');
  return pageResponse(html, template.policy, headers);
}

/** A request to each API, as a shell command. */
function requestsTo(address: string, token: string): [says: string, command: string][] {
  const authorization = `-H 'Authorization: Bearer ${token}'`;
  const body = `-d '${JSON.stringify({ query: '{ viewer { username } }' })}'`;
  const command = (...parts: string[]) => parts.join(' \\\n  ');
  return [
    [
      'GraphQL:',
      command(`curl ${address}/graphql`, authorization, "-H 'Content-Type: application/json'", body),
    ],
    ['REST:', command(`curl ${address}/api/v1/dtt/templates/active`, authorization)],
  ];
}

const template = readTemplate('home.html');

const copyable = (says: string, code: string) =>
  `<div class="code"><p>${says}</p><button type="button" class="copy">Copy</button><pre tabindex="0"><code>${code}</code></pre></div>`;
