/** Reads a stream with less work while many small pieces come. */

import type { Duplex } from 'node:stream';

/**
 * While more than so many `bytes` come `within` so many milliseconds, the stream is read at intervals. The server sends each
 * transaction in several small pieces, and to read each of them at once would take more of the processor, of the gateway's
 * machine and of the server's. If there is more than one read takes (`behind`), as in a commit of very many rows, it goes on
 * without pauses, which alone would take longer than a heartbeat may.
 */
const much = { bytes: 2_048, within: 10, interval: 5, behind: 65_536 } as const;

/** Pauses after each read while much is sent, unless it is so much that there is more to read at once. */
export function readAtIntervals(stream: Duplex): void {
  let bytes = 0;
  let since = 0;
  let sincePause = 0;
  let readOnUntil = 0;
  stream.on('data', (data: Buffer) => {
    const now = performance.now();
    if (now - since > much.within) {
      bytes = 0;
      since = now;
    }
    bytes += data.length;
    sincePause += data.length;
    // Of an encrypted connection each piece comes by itself, also if many have come.
    if (bytes < much.bytes || stream.readableLength > 0 || now < readOnUntil) return;
    const isBehind = sincePause >= much.behind;
    sincePause = 0;
    if (isBehind) {
      readOnUntil = now + much.interval;
      return;
    }
    stream.pause();
    setTimeout(() => stream.resume(), much.interval);
  });
}
