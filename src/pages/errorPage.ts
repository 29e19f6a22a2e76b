/** Errors as pages, for browsers. Programs get the same as text. */

import { STATUS_CODES } from 'node:http';
import type { Exchange } from '../http/exchange.ts';
import { isFromBrowser } from '../http/request.ts';
import type { HttpResponse } from '../http/response.ts';
import { headerFor, linksFor, listOf, type PageSettings, pages } from './links.ts';
import { pageResponse } from './page.ts';
import { escapeHtml, readTemplate } from './template.ts';

const template = readTemplate('error.html');

/** The error, as a page if a browser has asked for one. @param response the error as text. */
export function withErrorPage(
  exchange: Exchange,
  { status, headers: given, ...response }: HttpResponse,
  settings: PageSettings,
): HttpResponse {
  const headers = { ...given, Vary: 'Accept, Authorization' };
  if (!isFromBrowser(exchange)) return { ...response, status, headers };
  const title = STATUS_CODES[status] ?? '';
  const text = response.body.toString().replace('Not found.', 'There is no page at this address.');
  const lines = text.replace(' The home page lists all pages.', '').trim().split('\n');
  if (status >= 500) lines.push(`Try again in a moment. The log names this request \`${exchange.id}\`.`);
  const says = lines.map((line) => `<p>${escapeHtml(line)}</p>`).join('\n');
  const links = listOf(linksFor(settings, pages));
  const html = template.fill({ header: headerFor(settings), status: String(status), title, says, links });
  const page = pageResponse(html, template.policy);
  return { ...page, status, headers: { ...headers, ...page.headers, 'Cache-Control': 'no-store' } };
}
