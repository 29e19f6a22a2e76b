/** Messages of PostgreSQL's protocol (its documentation, "Message Formats"). */

/** The types of messages are letters. */
export const type = (letter: string) => letter.charCodeAt(0);

/** A message. A field of text ends with a zero byte. */
export function message(letter: string, ...fields: (string | Buffer)[]): Buffer {
  const body = Buffer.concat(
    fields.map((field) => (Buffer.isBuffer(field) ? field : Buffer.from(`${field}\0`))),
  );
  const head = Buffer.alloc(5, letter);
  head.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}

/** What is told to a client, which an error of class FATAL says is then hung up on. */
export function report(severity: 'FATAL' | 'NOTICE', code: string, text: string): Buffer {
  return message(
    severity === 'NOTICE' ? 'N' : 'E',
    `S${severity}`,
    `V${severity}`,
    `C${code}`,
    `M${text}`,
    '',
  );
}

/** The messages that stand one behind the other. */
export function* messagesIn(buffer: Buffer): Generator<Buffer> {
  for (let at = 0; at < buffer.length; ) {
    const end = at + 1 + buffer.readInt32BE(at + 1);
    yield buffer.subarray(at, end);
    at = end;
  }
}

/** The text that begins at a place in a message, and ends with a zero byte. */
export function textAt(buffer: Buffer, at: number): string {
  return buffer.toString('utf8', at, buffer.indexOf(0, at));
}
