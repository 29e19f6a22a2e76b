/**
 * Renders the guides: the pages of `docs`, the pages beside the README, and the README's table of documents as the first page. Links
 * among them are relative, so they hold below any address.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import hljs from 'highlight.js/lib/common';
import MarkdownIt from 'markdown-it';
import type { Section } from './find.ts';

export interface Guide {
  /** Where the gateway serves it, such as `/guides/rest`. */
  readonly path: string;
  readonly title: string;
  /** The first sentence, as text. */
  readonly description: string;
  readonly html: string;
  /** Links to all guides, and to the headings of this one. */
  readonly contents: string;
  readonly sections: readonly Section[];
}

/** The Markdown files, by the path of the guide. */
const files: ReadonlyMap<string, string> = new Map([
  ['/guides', 'README.md'],
  ...['CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', ...namesIn('docs')].map(
    (file) => [pathOf(file), file] as const,
  ),
]);

function namesIn(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.md'))
    .map((name) => posix.join(folder, name.replaceAll('\\', '/')));
}

function pathOf(file: string): string {
  const name = file.replace(/^docs\//, '').replace(/\.md$/, '');
  return `/guides/${name.replace(/\/README$/, '').toLowerCase()}`;
}

/** What the gateway serves of the files that are no guides. */
const served: Readonly<Record<string, string>> = {
  'schema.graphql': '/schema.graphql',
  'openapi.json': '/openapi.json',
};

/** The anchor of a heading, as GitHub makes it. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-');

const languages: Readonly<Record<string, string>> = { vue: 'xml', html: 'xml', tsx: 'ts' };

type Token = ReturnType<MarkdownIt['parse']>[number];

const markdown = new MarkdownIt({
  linkify: false,
  highlight: (code, name) => {
    const language = languages[name] ?? name;
    return hljs.getLanguage(language) ? hljs.highlight(code, { language }).value : '';
  },
});
// As the code of the references (`code.ts`). What may be wider than the page scrolls by itself, by the keyboard too.
const { fence } = markdown.renderer.rules;
markdown.renderer.rules.fence = (...given) => {
  const [tokens, index] = given;
  const pre = fence?.(...given).replace('<pre>', '<pre tabindex="0">');
  return `<div class="code"><div class="bar"><span>${tokens[index]?.info}</span><button type="button" class="copy">Copy</button></div>${pre}</div>\n`;
};
markdown.renderer.rules.table_open = () => '<div class="wide" tabindex="0"><table>\n';
markdown.renderer.rules.table_close = () => '</table></div>\n';

// The policy of the page forbids styles in the text.
for (const cell of ['th_open', 'td_open'])
  markdown.renderer.rules[cell] = (tokens, index) => {
    const token = tokens[index];
    return `<${token?.tag}${token?.attrGet('style') === 'text-align:right' ? ' class="figure"' : ''}>`;
  };

/** @param imageOf gives the address of an image below `/guides`, by the path of its file. */
export function renderGuides(imageOf: (file: string) => string): Guide[] {
  const pages = [...files].map(([path, file]) => renderGuide(path, file, imageOf));
  // In the order, and by the names, of the table of documents.
  const names = [...(pages[0]?.html ?? '').matchAll(/<a href="(guides\/[^"#]+)">([^<]+)<\/a>/g)];
  return pages.map((page) => {
    const links = names.map(([, to = '', name = '']) => {
      const isCurrent = `/${to}` === page.path;
      const headings = page.sections.filter(({ path }) => isCurrent && path.includes('#'));
      const below = headings.map(({ path, title }) => linkTo(path.replace(/.*#/, '#'), title));
      return linkTo(relative(page.path, `/${to}`), name, isCurrent, below);
    });
    return { ...page, contents: listOf(links) };
  });
}

const listOf = (items: readonly string[]) => (items.length > 0 ? `<ul>${items.join('')}</ul>` : '');

const linkTo = (href: string, name: string, isCurrent = false, below: readonly string[] = []) =>
  `<li><a href="${href}"${isCurrent ? ' aria-current="page"' : ''}>${markdown.utils.escapeHtml(name)}</a>${listOf(below)}</li>`;

/** The address of a guide, from the page at another path. */
const relative = (from: string, to: string) =>
  posix.relative(posix.dirname(from), to) || `../${posix.basename(to)}`;

function renderGuide(path: string, file: string, imageOf: (file: string) => string): Omit<Guide, 'contents'> {
  const pathIn = (link: string) => posix.join(posix.dirname(file), link);
  const imageAt = (link: string) => relative(path, `/guides/${imageOf(pathIn(link))}`);
  const text = readFileSync(file, 'utf8');
  // Of the README, only the table of documents is about a gateway that runs.
  const [, documents] = /^## Documentation\n(.*?)^## /ms.exec(text) ?? [];
  const tokens = markdown.parse(path === '/guides' ? `# Guides\n${documents}` : text, {});
  const sections: { title: string; path: string; names: string; text: string; code: string }[] = [];
  tokens.forEach((token, index) => {
    const { type, tag, content } = token;
    const children = token.children ?? [];
    if (type === 'heading_open') {
      const title = textOf(tokens[index + 1]?.children ?? []);
      token.attrSet('id', anchorOf(title));
      const own = tag === 'h1' ? path : `${path}#${anchorOf(title)}`;
      sections.push({ title, path: own, names: '', text: '', code: '' });
    }
    const section = sections.at(-1);
    if (section && tokens[index - 2]?.type === 'tr_open') section.names += `${textOf(children)}\n`;
    if (section && type === 'fence') section.code += `${content}\n`;
    else if (section && tokens[index - 1]?.type !== 'heading_open') section.text += `${textOf(children)}\n`;
    for (const child of children) {
      if (child.type === 'image') child.attrSet('src', imageAt(child.attrGet('src') ?? ''));
      if (child.type === 'link_open') child.attrSet('href', targetOf(child.attrGet('href') ?? ''));
    }
  });

  /** Where a link leads in the gateway; nothing if it leads to a file that only the sources have. */
  function targetOf(link: string): string {
    if (/^(\w+:|#)/.test(link)) return link;
    const [name = '', anchor] = link.split('#');
    const to = served[pathIn(name)] ?? [...files].find(([, other]) => other === pathIn(name))?.[0];
    return to ? relative(path, to) + (anchor === undefined ? '' : `#${anchor}`) : '';
  }

  const html = markdown.renderer.render(tokens, markdown.options, {});
  const title = sections[0]?.title ?? '';
  return {
    ...{ path, title },
    description: /^.*?\.(?=\s|$)/s.exec(sections[0]?.text.trim() ?? '')?.[0] ?? title,
    // Links to nowhere are their texts, and a cell without a text heads nothing.
    html: html.replace(/<a href="">(.*?)<\/a>/gs, '$1').replaceAll('<th></th>', '<td></td>'),
    sections: sections.map((section) => ({ ...section, page: title })),
  };
}

const textOf = (children: readonly Token[]): string =>
  children.map(({ type, content }) => (type === 'softbreak' ? ' ' : content)).join('');
