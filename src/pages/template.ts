/**
 * Pages from HTML files with parts in double braces, such as `{{token}}`. All have the look of `look.css`. Those to read, the guides
 * and the references, stand in `reading.html`, with contents and a search. A reference has sections of entries.
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

/**
 * Reads an HTML file. The files that its comments name take their place: styles and scripts that several pages share.
 * Its style and its script must have no parts.
 * @param main the file that takes the place of the part `main`.
 */
export function readTemplate(name: string, main?: string): Template {
  const page = main ? read(name).replace('{{main}}', () => read(main)) : read(name);
  const html = page
    .replace(/\/\* (\S+) comes here\. \*\//g, (_, file) => read(file))
    .replace('url(icon.svg)', `url('data:image/svg+xml,${icon}')`)
    .replace('{{icon}}', icon);
  const digestsOf = (elements: RegExp) =>
    Array.from(
      html.matchAll(elements),
      ([, content = '']) => `'sha256-${hash('sha256', content, 'base64')}'`,
    );
  return {
    fill: (parts) => html.replace(/\{\{(\w+)\}\}/g, (_, part) => parts[part] ?? ''),
    policy: {
      'style-src': digestsOf(/<style>(.*)<\/style>/gs).join(' '),
      'script-src': digestsOf(/<script(?: type="module")?>(.*?)<\/script>/gs).join(' '),
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

const reference = readTemplate('reading.html', 'reference.html');

/** A route, an operation or a type in a reference. */
export interface Entry {
  /** The target of links to it. */
  readonly id: string;
  /** What the contents call it, in HTML. */
  readonly link: string;
  readonly title: string;
  /** What is said about it, in HTML. */
  readonly text: string;
  /** Code beside the text, in HTML. */
  readonly samples?: string;
  /** Attributes of the form that the entry is; undefined for an entry without inputs. */
  readonly form?: string;
}

export interface Section {
  readonly title: string;
  readonly says: string;
  readonly entries: readonly Entry[];
}

interface Reference {
  readonly header: string;
  readonly title: string;
  readonly description: string;
  /** In HTML, and what is beside it. */
  readonly introduction: string;
  readonly aside: string;
  readonly sections: readonly Section[];
}

/** A page with the contents at its left. */
export function referencePage({ sections, ...parts }: Reference): HttpResponse {
  const contents = sections.map(
    ({ title, entries }) =>
      `<li><h2>${escapeHtml(title)}</h2><ul>${entries.map(({ id, link }) => `<li><a href="#${id}">${link}</a></li>`).join('')}</ul></li>`,
  );
  const content = sections.map(
    ({ title, says, entries }) =>
      `<section>\n<h2>${escapeHtml(title)}</h2>\n${prose(says)}\n${entries.map(htmlOf).join('\n')}\n</section>`,
  );
  const html = reference.fill({
    ...parts,
    contents: `<ul>${contents.join('\n')}</ul>`,
    content: content.join('\n'),
  });
  return pageResponse(html, reference.policy);
}

function htmlOf({ id, title, text, samples, form }: Entry): string {
  const element = form === undefined ? 'article' : 'form';
  const beside = samples ? `\n<div class="samples">\n${samples}\n</div>` : '';
  return `<${element} class="entry${samples ? ' beside' : ''}" id="${id}"${form ?? ''}>\n<div>\n<h3>${title}</h3>\n${text}\n</div>${beside}\n</${element}>`;
}

/** What requests from the page, and the samples, are sent with. */
export const tokenInput = (token: string): string => `<label class="card">API token
<input id="token" autocomplete="off" spellcheck="false" value="${token}">
<span class="hint">${token ? "Filled in with the demo account's token." : 'For the samples. It is not stored.'}</span></label>`;

/** Fields, arguments or messages, below each other. @param rows the name and the description of each, in HTML. */
export function fields(rows: readonly (readonly [name: string, says: string])[]): string {
  const items = rows.map(([name, says]) => `<li><div>${name}</div><div>${says}</div></li>`);
  return items.length > 0 ? `<ul class="fields">${items.join('')}</ul>` : '';
}
