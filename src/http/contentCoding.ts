/** Content codings (RFC 9110, section 8.4.1): which of them a client takes, and how bytes are brought into them. */

import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { LRUCache } from 'lru-cache';
import Negotiator from 'negotiator';
import pLimit from 'p-limit';

/** What a body is compressed by. */
export type Coding = 'zstd' | 'br' | 'gzip';

/** How a body may be sent: `identity` is the name for as it is. */
export type Form = Coding | 'identity';

interface Compressor {
  now(body: Buffer): Buffer;
  later(body: Buffer): Promise<Buffer>;
}

const { constants } = zlib;

/** Of zstd, which Node has since 22.15 and 23.8: the types are those of the oldest Node that there is to be. */
interface Zstd {
  readonly zstdCompressSync?: (body: Buffer, options: object) => Buffer;
  readonly zstdCompress?: (
    body: Buffer,
    options: object,
    callback: (error: Error | null, result: Buffer) => void,
  ) => void;
}

/** `ZSTD_c_compressionLevel`, as zstd has it. */
const zstdLevel = 100;

/**
 * The level of each is where more time buys little: of 50 sessions, 29 kB, zstd makes 2.6 kB in 60 µs, Brotli 2.7 kB in
 * 120 µs and gzip 3.3 kB in 60 µs; twice the time takes off a tenth of that (docs/benchmarks.md#compression). One level
 * for all, since a form has one tag, which stands for its bytes.
 */
const compressors = new Map<Coding, Compressor>();

// The types do not say what a newer Node has beside them.
const { zstdCompressSync, zstdCompress } = zlib as typeof zlib & Zstd;
if (zstdCompressSync && zstdCompress) {
  const options = { params: { [zstdLevel]: 1 } };
  const later = promisify(zstdCompress);
  compressors.set('zstd', {
    now: (body) => zstdCompressSync(body, options),
    later: (body) => later(body, options),
  });
}

const brotli = {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: 4,
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
  },
};
const brotliLater = promisify<Buffer, zlib.BrotliOptions, Buffer>(zlib.brotliCompress);
compressors.set('br', {
  now: (body) => zlib.brotliCompressSync(body, brotli),
  later: (body) => brotliLater(body, brotli),
});

const deflate = { level: 3 };
const gzipLater = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gzip);
compressors.set('gzip', {
  now: (body) => zlib.gzipSync(body, deflate),
  later: (body) => gzipLater(body, deflate),
});

/** The codings that this Node has, the best one first: it is what a client gets that likes several as well. */
export const codings: readonly Coding[] = [...compressors.keys()];

/** How a client takes a response. */
export interface Acceptance {
  /** All that it takes, what it gets if it can be first. Empty for one that takes nothing that there is. */
  readonly forms: readonly Form[];
  readonly takesPlain: boolean;
}

/** Those that said nothing take everything, but what they can read is not known. */
const plainOnly: Acceptance = { forms: ['identity'], takesPlain: true };

/** What the latest values of the header mean: browsers and libraries send the same ones again and again. */
const known = new LRUCache<string, Acceptance>({ max: 100 });

/** What a client takes by its `Accept-Encoding` (RFC 9110, section 12.5.3). */
export function acceptanceOf(header: string | undefined): Acceptance {
  if (header === undefined) return plainOnly;
  const before = known.get(header);
  if (before) return before;
  const acceptance = readAcceptance(header);
  known.set(header, acceptance);
  return acceptance;
}

function readAcceptance(header: string): Acceptance {
  const names = header.toLowerCase().split(/[\s,;]+/);
  const named = codings.filter((coding) => names.includes(coding));
  // Who says `*` has not said what they know: gzip is what everybody does.
  const offered = [...new Set<Form>([...named, 'gzip', ...codings, 'identity'])];
  const negotiator: PreferringNegotiator = new Negotiator({ headers: { 'accept-encoding': header } });
  const chosen = negotiator.encodings(offered, { preferred: offered });
  const forms = chosen.flatMap((name) => offered.filter((form) => form === name));
  return { forms, takesPlain: forms.length === 0 || forms.includes('identity') };
}

/** As it is since 1.0: its types do not know yet that it takes what the server prefers among what the client likes as well. */
interface PreferringNegotiator {
  encodings(offered: readonly string[], options: { preferred: readonly string[] }): string[];
}

/** How large a body may be to be compressed at once: up to there handing it to another thread costs more than to do it. */
const largestAtOnce = 64 * 1024;

/** Each that is underway takes a quarter of a megabyte beside the body, and there are two threads to spare at most. */
const oneOfFew = pLimit(2);

/** The bytes compressed, with memory of their own. At once, or later where that would hold up everybody else. */
export function compress(body: Buffer, coding: Coding): Buffer | Promise<Buffer> {
  const compressor = compressors.get(coding);
  if (!compressor) throw new RangeError(`There is no ${coding} here: there are ${codings}.`);
  if (body.length <= largestAtOnce) return detachedBytes(compressor.now(body));
  return oneOfFew(() => compressor.later(body)).then(detachedBytes);
}

/**
 * The bytes with memory of their own. Node cuts small buffers out of pieces of several kilobytes, all of which a slice
 * would keep for as long as it is there.
 */
export function detachedBytes(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength === bytes.length) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  return own;
}

/**
 * A gzip stream made of pieces, each of which can be read as soon as it is there: a piece is one or more blocks of deflate
 * (RFC 1951) that end on a byte, and refer to nothing before them. So nothing is remembered between two pieces but a sum,
 * where a compressor that went on would hold a quarter of a megabyte for each stream.
 */
export interface PieceEncoder {
  /** The blocks of a piece. */
  blocksOf(piece: Uint8Array): Buffer | Promise<Buffer>;
  /** What to send for a piece of which these are the blocks, given in the order in which they are sent. */
  add(piece: Uint8Array, blocks: Buffer): Buffer;
  /** What to send at the end. */
  end(): Buffer;
}

/** Smaller pieces go as they are: they gain nothing. */
const smallestPiece = 1024;

const rawOptions = { ...deflate, finishFlush: constants.Z_SYNC_FLUSH };
const rawLater = promisify<Buffer | Uint8Array, zlib.ZlibOptions, Buffer>(zlib.deflateRaw);

/** An empty block that is stored: what a reader has to get to before it hands on what it has (RFC 7692, section 7.2.1). */
const flushed = Buffer.from([0, 0, 0, 0xff, 0xff]);
/** No name, no time, and of no known system (RFC 1952, section 2.3). */
const gzipHeader = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
/** A block with nothing in it that says that it is the last. */
const lastBlock = Buffer.from([3, 0]);

export function createPieceEncoder(): PieceEncoder {
  let sum = 0;
  let length = 0;
  let isBegun = false;
  const begin = () => {
    const head = isBegun ? [] : [gzipHeader];
    isBegun = true;
    return head;
  };
  return {
    blocksOf(piece) {
      if (piece.length < smallestPiece) return storedBlock(piece);
      if (piece.length <= largestAtOnce) return zlib.deflateRawSync(piece, rawOptions);
      return oneOfFew(() => rawLater(piece, rawOptions));
    },
    add(piece, blocks) {
      // Of nothing it would be that of a new stream.
      if (piece.length > 0) sum = zlib.crc32(piece, sum);
      length = (length + piece.length) % 2 ** 32;
      return Buffer.concat([...begin(), blocks]);
    },
    end() {
      const trailer = Buffer.alloc(8);
      trailer.writeUInt32LE(sum, 0);
      trailer.writeUInt32LE(length, 4);
      return Buffer.concat([...begin(), lastBlock, trailer]);
    },
  };
}

/** A block that has the bytes as they are (RFC 1951, section 3.2.4). */
function storedBlock(bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt16LE(bytes.length, 1);
  head.writeUInt16LE(bytes.length ^ 0xffff, 3);
  return Buffer.concat([head, bytes, flushed]);
}
