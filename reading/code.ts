/** Code in pages: highlighted, with a button that copies it. `reading.css` has the colours, and `copy.js` the copying. */

import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import graphql from 'highlight.js/lib/languages/graphql';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';

const languages = { bash, graphql, javascript, json, python };
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);

export interface Code {
  readonly language: keyof typeof languages;
  readonly text: string;
}

/** What code has in place of the token and of the gateway's address, until the script of the page fills them in. */
export const placeholders = { token: 'YOUR_API_TOKEN', origin: 'http://localhost:4000' };

/** @param bar what is above the code, in HTML: its title, links and further buttons. */
export const codeBlock = (bar: string, code: Code): string => blockOf(bar, preOf(code));

/** The same in several languages, of which the reader chooses one. @param codes by the names of the languages. */
export function codeChoice(bar: string, codes: Readonly<Record<string, Code>>): string {
  const options = Object.keys(codes).map((name) => `<option>${name}</option>`);
  const choice = `<select class="language" aria-label="Language" autocomplete="off">${options.join('')}</select>`;
  const all = Object.entries(codes).map(([name, code]) => preOf(code, ` data-language="${name}"`));
  return blockOf(`${choice}${bar}`, `<div class="choice">${all.join('\n')}</div>`);
}

const blockOf = (bar: string, content: string) =>
  `<div class="code"><div class="bar">${bar}<button type="button" class="copy">Copy</button></div>${content}</div>`;

function preOf({ language, text }: Code, attributes = ''): string {
  const { value } = hljs.highlight(text, { language });
  const html = Object.entries(placeholders).reduce(
    (filled, [name, given]) => filled.replaceAll(given, `<var class="${name}">${given}</var>`),
    value,
  );
  return `<pre tabindex="0"${attributes}><code>${html}</code></pre>`;
}
