/** The body of a response of the upstream, up to a limit. */

/** The most that a response may have, in bytes: a page of 100 sessions has less than a tenth of it. */
export const responseLimit = 4 * 1024 * 1024;

/** The whole body, or undefined for one over the limit, of which no more than that is read. */
export async function readResponseBody(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > responseLimit) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
