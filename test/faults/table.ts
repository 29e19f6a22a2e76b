/** Prints tables in Markdown, as the documentation shows them. */

export const seconds = (milliseconds: number): string => `${(milliseconds / 1_000).toFixed(1)} s`;

export function markdown([head = [], ...body]: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...body].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
