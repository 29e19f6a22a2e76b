/**
 * The frame of all pages to read, the guides and the references: contents with a search beside the text. A reference has sections of
 * entries. The gateway fills in `{{header}}` and `{{token}}`.
 */

import { escapeHtml, readTemplate } from '../src/pages/template.ts';
import { root } from '../src/root.ts';

/** Paragraphs and lists, such as descriptions have them, as HTML. */
export const prose = (text?: string | null): string =>
  (text ?? '')
    .split(/\n\n|\n(?=- )/)
    .map((part) =>
      part.startsWith('- ') ? `<li>${escapeHtml(part.slice(2))}</li>` : `<p>${escapeHtml(part)}</p>`,
    )
    .join('\n')
    .replace(/<li>.*<\/li>/s, '<ul>$&</ul>');

const folder = new URL('reading/', root);
const frame = readTemplate('reading.html', folder);

/**
 * Reads the file with the main part of the pages of one kind.
 * @returns a function that makes a page. It takes HTML by the names of the parts.
 */
export function readKind(name: string): (parts: Readonly<Record<string, string>>) => string {
  const main = readTemplate(name, folder);
  return (parts) => frame.fill({ ...parts, header: '{{header}}', main: main.fill(parts) });
}

const fillReference = readKind('reference.html');

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
  readonly title: string;
  readonly description: string;
  /** In HTML, and what is beside it. */
  readonly introduction: string;
  readonly aside: string;
  readonly sections: readonly Section[];
}

/** A page with sections of entries, as HTML. */
export function referencePage({ sections, ...parts }: Reference): string {
  const contents = sections.map(
    ({ title, entries }) =>
      `<li><h2>${escapeHtml(title)}</h2><ul>${entries.map(({ id, link }) => `<li><a href="#${id}">${link}</a></li>`).join('')}</ul></li>`,
  );
  const content = sections.map(
    ({ title, says, entries }) =>
      `<section>\n<h2>${escapeHtml(title)}</h2>\n${prose(says)}\n${entries.map(htmlOf).join('\n')}\n</section>`,
  );
  return fillReference({
    ...parts,
    contents: `<ul>${contents.join('\n')}</ul>`,
    content: content.join('\n'),
  });
}

function htmlOf({ id, title, text, samples, form }: Entry): string {
  const element = form === undefined ? 'article' : 'form';
  const beside = samples ? `\n<div class="samples">\n${samples}\n</div>` : '';
  return `<${element} class="entry${samples ? ' beside' : ''}" id="${id}"${form ?? ''}>\n<div>\n<h3>${title}</h3>\n${text}\n</div>${beside}\n</${element}>`;
}

/** What requests from the page, and the samples, are sent with. The gateway fills in the token of the demo account. */
export const tokenInput = `<label class="card">API token
<input id="token" autocomplete="off" spellcheck="false" value="{{token}}">
<span class="hint">For the samples. It is not stored.</span></label>`;

/** Fields, arguments or messages, below each other. @param rows the name and the description of each, in HTML. */
export function fields(rows: readonly (readonly [name: string, says: string])[]): string {
  const items = rows.map(([name, says]) => `<li><div>${name}</div><div>${says}</div></li>`);
  return items.length > 0 ? `<ul class="fields">${items.join('')}</ul>` : '';
}
