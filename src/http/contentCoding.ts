/** Content codings (RFC 9110, section 8.4.1): which of them a client accepts, and compressing bytes. */

import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { LRUCache } from 'lru-cache';
import Negotiator from 'negotiator';
import pLimit from 'p-limit';

/** A coding that compresses a body. */
export type Coding = 'zstd' | 'br' | 'gzip';

/** How a body may be sent. `identity` means uncompressed. */
export type Form = Coding | 'identity';

interface Compressor {
  now(body: Buffer): Buffer;
  later(body: Buffer): Promise<Buffer>;
}

const { constants } = zlib;

/** Node has zstd since 22.15 and 23.8. The type definitions in use are those of the oldest supported Node, which lacks it. */
interface Zstd {
  readonly zstdCompressSync?: (body: Buffer, options: object) => Buffer;
  readonly zstdCompress?: (
    body: Buffer,
    options: object,
    callback: (error: Error | null, result: Buffer) => void,
  ) => void;
}

/** The number of the parameter `ZSTD_c_compressionLevel`. */
const zstdLevel = 100;

/**
 * Each level is the one above which more time saves little: of 50 sessions (29 kB), zstd makes 2.6 kB in 60 µs, Brotli
 * 2.7 kB in 120 µs and gzip 3.3 kB in 60 µs, and twice the time saves another tenth (docs/benchmarks.md#compression).
 * All responses use the same level, since a form has one tag, which stands for its bytes.
 */
const compressors = new Map<Coding, Compressor>();

// The type definitions do not have what newer versions of Node add.
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

/** The codings that this Node has, in the order of preference for a client that accepts several equally. */
export const codings: readonly Coding[] = [...compressors.keys()];

/** The forms in which a client accepts a response. */
export interface Acceptance {
  /** The accepted forms, the preferred one first. Empty if the client accepts none that exists. */
  readonly forms: readonly Form[];
  /** Whether the uncompressed form may be sent. It is sent as well if the client accepts nothing that exists. */
  readonly acceptsIdentity: boolean;
}

/** A client without the header accepts every coding by the specification, but may be unable to decode any. */
const identityOnly: Acceptance = { forms: ['identity'], acceptsIdentity: true };

/** The meaning of the latest values of the header. Browsers and libraries send the same few values. */
const known = new LRUCache<string, Acceptance>({ max: 100 });

/** What a client accepts by its `Accept-Encoding` (RFC 9110, section 12.5.3). */
export function acceptanceOf(header: string | undefined): Acceptance {
  if (header === undefined) return identityOnly;
  const before = known.get(header);
  if (before) return before;
  const acceptance = readAcceptance(header);
  known.set(header, acceptance);
  return acceptance;
}

function readAcceptance(header: string): Acceptance {
  const names = header.toLowerCase().split(/[\s,;]+/);
  const named = codings.filter((coding) => names.includes(coding));
  // `*` does not say which codings the client can decode. Every client can decode gzip.
  const offered = [...new Set<Form>([...named, 'gzip', ...codings, 'identity'])];
  const negotiator: PreferringNegotiator = new Negotiator({ headers: { 'accept-encoding': header } });
  const chosen = negotiator.encodings(offered, { preferred: offered });
  const forms = chosen.flatMap((name) => offered.filter((form) => form === name));
  return { forms, acceptsIdentity: forms.length === 0 || forms.includes('identity') };
}

/** Since version 1.0 Negotiator has the option `preferred`, the server's order among equals. Its type definitions lack it. */
interface PreferringNegotiator {
  encodings(offered: readonly string[], options: { preferred: readonly string[] }): string[];
}

/** The largest body, in bytes, that is compressed in this thread. For smaller ones handing them to another thread takes longer than compressing. */
const largestAtOnce = 64 * 1024;

/** Limits compressions in other threads: each takes a quarter of a megabyte beside the body, and a thread of Node's pool of four. */
const limitThreads = pLimit(2);

/** Compresses the bytes, in another thread where that would hold up other requests. The result has memory of its own. */
export function compress(body: Buffer, coding: Coding): Buffer | Promise<Buffer> {
  const compressor = compressors.get(coding);
  if (!compressor) throw new RangeError(`There is no ${coding} here: there are ${codings}.`);
  if (body.length <= largestAtOnce) return withOwnMemory(compressor.now(body));
  return limitThreads(() => compressor.later(body)).then(withOwnMemory);
}

/**
 * The bytes in memory of their own. Node allocates small buffers as slices of a pool of several kilobytes, and one slice
 * would hold the whole pool in memory.
 */
export function withOwnMemory(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength === bytes.length) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  return own;
}

/**
 * A gzip stream made of pieces, each of which can be decoded as soon as it has arrived. A piece is one or more blocks of
 * deflate (RFC 1951) that end on a byte boundary and refer to nothing before them. So only the checksum and the length are
 * remembered between pieces, where a compressor for the whole stream would hold a quarter of a megabyte.
 */
export interface PieceEncoder {
  /** Compresses a piece into blocks. */
  blocksOf(piece: Uint8Array): Buffer | Promise<Buffer>;
  /** Returns the bytes to send for a piece and its blocks. Call it in the order in which pieces are sent. */
  add(piece: Uint8Array, blocks: Buffer): Buffer;
  /** Returns the bytes to send at the end. */
  end(): Buffer;
}

/** Pieces smaller than this, in bytes, are stored uncompressed. */
const smallestPiece = 1024;

const rawOptions = { ...deflate, finishFlush: constants.Z_SYNC_FLUSH };
const rawLater = promisify<Buffer | Uint8Array, zlib.ZlibOptions, Buffer>(zlib.deflateRaw);

/** An empty stored block. It makes a decoder hand on all that it has decoded (RFC 7692, section 7.2.1). */
const flushed = Buffer.from([0, 0, 0, 0xff, 0xff]);
/** Without a name and a time, and of an unknown system (RFC 1952, section 2.3). */
const gzipHeader = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
/** An empty block that is marked as the last. */
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
      return limitThreads(() => rawLater(piece, rawOptions));
    },
    add(piece, blocks) {
      // Node 20 returns 0 for some empty arrays, whatever the sum so far.
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

/** A stored block: the bytes uncompressed (RFC 1951, section 3.2.4). */
function storedBlock(bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt16LE(bytes.length, 1);
  head.writeUInt16LE(bytes.length ^ 0xffff, 3);
  return Buffer.concat([head, bytes, flushed]);
}
