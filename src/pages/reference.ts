/** What the references of both APIs have in common: a page with sections of cards that open, and a search. */

import type { HttpResponse } from '../http/response.ts';
import { pageResponse } from './page.ts';
import { escapeHtml, prose, readTemplate } from './template.ts';

const template = readTemplate('reference.html');

/** @param parts `title` and `description` as text, and `header`, `introduction` and `content` in HTML. */
export const referencePage = (parts: Readonly<Record<string, string>>): HttpResponse =>
  pageResponse(template.fill(parts), template.policy);

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
