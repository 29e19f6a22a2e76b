/** Reads and writes messages of PostgreSQL's protocol (its documentation, "Message Formats"). */

/** The type of a message is the code of a letter. */
export const type = (letter: string) => letter.charCodeAt(0);

/** Writes a message. A text field is followed by a zero byte. */
export function message(letter: string, ...fields: (string | Buffer)[]): Buffer {
  const body = Buffer.concat(
    fields.map((field) => (Buffer.isBuffer(field) ? field : Buffer.from(`${field}\0`))),
  );
  const head = Buffer.alloc(5, letter);
  head.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}

/** A notice for a client, or an error after which its connection is closed. */
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

/** Splits a buffer of complete messages. */
export function* messagesIn(buffer: Buffer): Generator<Buffer> {
  for (let at = 0; at < buffer.length; ) {
    const end = at + 1 + buffer.readInt32BE(at + 1);
    yield buffer.subarray(at, end);
    at = end;
  }
}

/** The text from an offset in a message up to the next zero byte. */
export function textAt(buffer: Buffer, at: number): string {
  return buffer.toString('utf8', at, buffer.indexOf(0, at));
}
