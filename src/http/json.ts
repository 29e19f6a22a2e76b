/** Reads JSON from outside the gateway. */

/**
 * The value of the text. A byte order mark before it is ignored (RFC 8259, section 8.1).
 * @throws {SyntaxError} if the text is not JSON.
 */
export const readJson = (text: string): unknown =>
  JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text);

/** The value of the text, or undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return readJson(text);
  } catch {
    return undefined;
  }
}

/** Whether a value is an object, and neither null nor a list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
