/** The search of the guides. */

import { type Found, openIndex } from './find.ts';

/** An element of the page (`reading.html` and `guide.html`). */
function part<Part extends Element>(selector: string, kind: new () => Part): Part {
  const found = document.querySelector(selector);
  if (found instanceof kind) return found;
  throw new Error(`the page has no ${selector}`);
}

const input = part('search input', HTMLInputElement);
const status = part('search [role=status]', HTMLElement);
const results = part('#results', HTMLElement);
const list = part('#results ol', HTMLElement);
const guide = part('.guide', HTMLElement);
/** The address of the guides, which may be below a prefix. */
const { index = '', guides = '' } = results.dataset;

let opening: Promise<(question: string) => Found[]> | undefined;
/** The index is fetched when the search gets the focus, and again if that failed. */
function open() {
  opening ??= fetch(index).then(async (response) => openIndex(await response.text()));
  opening.catch(() => {
    opening = undefined;
  });
  return opening;
}

const make = (name: string, text: string, ...children: Node[]) => {
  const element = document.createElement(name);
  element.append(text, ...children);
  return element;
};

function resultOf({ path, page, title, excerpt }: Found): Node {
  const link = document.createElement('a');
  link.href = path.replace(/^\/guides/, guides);
  link.append(title === page ? title : `${page} › ${title}`);
  return make('li', '', link, make('p', excerpt));
}

async function show(): Promise<void> {
  const question = input.value.trim();
  guide.hidden = question !== '';
  results.hidden = !guide.hidden;
  const find = await open().catch(() => undefined);
  if (question !== input.value.trim()) return;
  const found = find?.(question) ?? [];
  list.replaceChildren(...found.map(resultOf));
  status.textContent = question && saysOf(find && found.length, question);
}

function saysOf(count: number | undefined, question: string): string {
  if (count === undefined) return 'The search could not be loaded.';
  if (count === 0) return `No results for "${question}".`;
  return count === 1 ? '1 result' : `${count} results`;
}

input.addEventListener('focus', open);
input.addEventListener('input', show);
// A result that is on this page closes the search.
results.addEventListener('click', () => {
  input.value = '';
  show();
});
addEventListener('keydown', (event) => {
  const links = [...results.querySelectorAll('a')];
  const { activeElement: focused } = document;
  const current = focused instanceof HTMLAnchorElement ? links.indexOf(focused) : -1;
  const isInSearch = current >= 0 || focused === input;
  if (!isInSearch) return;
  if (event.key === 'ArrowDown') links[Math.min(current + 1, links.length - 1)]?.focus();
  else if (event.key === 'ArrowUp') (links[current - 1] ?? input).focus();
  else if (event.key === 'Enter' && current < 0) links[0]?.click();
  else if (event.key === 'Escape') {
    input.value = '';
    show();
    input.focus();
  } else return;
  event.preventDefault();
});
