/**
 * Pages from HTML files with parts in double braces, such as `{{token}}`. All have the look of `look.css`. The references of both APIs
 * are pages with sections of cards that open, and a search.
 */

import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { HttpResponse } from '../http/response.ts';
import { root } from '../root.ts';
import { type Policy, pageResponse } from './page.ts';

const read = (name: string) => readFileSync(new URL(`src/pages/${name}`, root), 'utf8');

/** The mark of all pages, as a part of a `data:` address. */
export const icon = encodeURIComponent(read('icon.svg'));

export interface Template {
  /** @param parts HTML by the names of the parts. */
  fill(parts: Readonly<Record<string, string>>): string;
  /** Allows the style and the script of the page, and requests to this gateway. */
  readonly policy: Policy;
}

/** Reads an HTML file. Its style and its script must have no parts. */
export function readTemplate(name: string): Template {
  const look = read('look.css').replace('url(icon.svg)', `url('data:image/svg+xml,${icon}')`);
  const html = read(name).replace('/* The look of all pages comes here. */', look).replace('{{icon}}', icon);
  const digestOf = (element: RegExp) => `'sha256-${hash('sha256', element.exec(html)?.[1] ?? '', 'base64')}'`;
  return {
    fill: (parts) => html.replace(/\{\{(\w+)\}\}/g, (_, part) => parts[part] ?? ''),
    policy: {
      'style-src': digestOf(/<style>(.*)<\/style>/s),
      'script-src': digestOf(/<script type="module">(.*)<\/script>/s),
      'img-src': 'data:',
      'connect-src': "'self'",
    },
  };
}

/** A text as HTML. Text between backticks is code. */
export function escapeHtml(text: string): string {
  const escaped = text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
  return escaped.replace(/`([^`]+)`/g, '<code>$1</code>');
}

/** Paragraphs and lists, such as descriptions have them, as HTML. */
export const prose = (text?: string | null): string =>
  (text ?? '')
    .split(/\n\n|\n(?=- )/)
    .map((part) =>
      part.startsWith('- ') ? `<li>${escapeHtml(part.slice(2))}</li>` : `<p>${escapeHtml(part)}</p>`,
    )
    .join('\n')
    .replace(/<li>.*<\/li>/s, '<ul>$&</ul>');

const reference = readTemplate('reference.html');

/** @param parts `title` and `description` as text, and `header`, `introduction` and `content` in HTML. */
export const referencePage = (parts: Readonly<Record<string, string>>): HttpResponse =>
  pageResponse(reference.fill(parts), reference.policy);

/** The cards below a heading; nothing if there are none. */
export const section = (title: string, says: string, cards: readonly string[]): string =>
  cards.length > 0
    ? `<section>\n<h2>${escapeHtml(title)}</h2>\n${prose(says)}\n${cards.join('\n')}\n</section>`
    : '';

/** @param id the target of links to the card. @param title what is seen of a closed card, in HTML. */
export const card = (id: string, title: string, content: string): string =>
  `<details class="card" id="${id}">\n<summary>${title}</summary>\n${content}\n</details>`;

/** @param rows the cells of each row, in HTML. */
export function table(rows: readonly (readonly string[])[]): string {
  const lines = rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`);
  return lines.length > 0 ? `<table>${lines.join('')}</table>` : '';
}
