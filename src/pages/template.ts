/** Pages from HTML files with parts in double braces, such as `{{token}}`. All have the look of `look.css`. */

import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { root } from '../root.ts';
import type { Policy } from './page.ts';

const own = new URL('src/pages/', root);
const read = (name: string, folder = own) => readFileSync(new URL(name, folder), 'utf8');

/** The mark of all pages, as a part of a `data:` address. */
export const icon = encodeURIComponent(read('icon.svg'));

export interface Template {
  /** @param parts HTML by the names of the parts. */
  fill(parts: Readonly<Record<string, string>>): string;
  readonly policy: Policy;
}

/**
 * Reads an HTML file. The files that its comments name take their place: styles and scripts that several pages share.
 * Its style and its script must have no parts.
 * @param folder has the file, and those that it names.
 */
export function readTemplate(name: string, folder = own): Template {
  const html = read(name, folder)
    .replace(/\/\* (\S+) comes here\. \*\//g, (_, file) => read(file, folder))
    .replace('url(icon.svg)', `url('data:image/svg+xml,${icon}')`)
    .replace('{{icon}}', icon);
  return {
    fill: (parts) => html.replace(/\{\{(\w+)\}\}/g, (_, part) => parts[part] ?? ''),
    policy: policyOf(html),
  };
}

/** Allows the style and the scripts of a page of ours, and requests to this gateway. @param html has nothing of a client yet. */
export function policyOf(html: string): Policy {
  const digestsOf = (elements: RegExp) =>
    Array.from(
      html.matchAll(elements),
      ([, content = '']) => `'sha256-${hash('sha256', content, 'base64')}'`,
    );
  return {
    'style-src': digestsOf(/<style>(.*)<\/style>/gs).join(' '),
    'script-src': digestsOf(/<script(?: type="module")?>(.*?)<\/script>/gs).join(' '),
    'img-src': 'data:',
    'connect-src': "'self'",
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
