/** Reads JSON from outside the gateway, and writes it again. */

import { errorText } from '../errors.ts';

/**
 * The value of the text, or why it has none. A byte order mark before it is ignored (RFC 8259, section 8.1).
 * @param what names the text in the message.
 */
export function readJson(
  text: string,
  what: string,
): { readonly value: unknown } | { readonly problem: string } {
  if (text === '') return { problem: `${what} is empty` };
  try {
    return { value: JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text) };
  } catch (error) {
    return { problem: `${what} is not JSON: ${errorText(error)}` };
  }
}

/** The value of the text, or undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  const read = readJson(text, '');
  return 'value' in read ? read.value : undefined;
}

/** Whether a value is an object, and neither null nor a list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The JSON text of a value that was read from JSON; no other value has the same text. Undefined for a value that is too deep to be
 * written, or has a number such as 1e999, which is read as `Infinity` and written as null.
 */
export function exactText(value: unknown): string | undefined {
  let isExact = true;
  try {
    const text = JSON.stringify(value, (_name, each) => {
      if (each === Number.POSITIVE_INFINITY || each === Number.NEGATIVE_INFINITY) isExact = false;
      return each;
    });
    return isExact ? text : undefined;
  } catch {
    // The writer calls itself for each level, and runs out of stack.
    return undefined;
  }
}
