import { randomBytes } from 'node:crypto';
import { createGunzip, gunzipSync, constants as zlibConstants } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  acceptanceOf,
  type Coding,
  codings,
  compress,
  createPieceEncoder,
} from '../../src/http/contentCoding.ts';
import { decoded, hasZstd } from '../support/decoded.ts';
import { fuzzed } from '../support/fuzzed.ts';

const best = codings[0] ?? 'gzip';
const others = codings.filter((coding) => coding !== 'gzip');

describe('acceptanceOf', () => {
  it('the codings are those that this version of Node has, best first', () => {
    expect(codings).toEqual(hasZstd ? ['zstd', 'br', 'gzip'] : ['br', 'gzip']);
  });

  it.each([
    ['of today’s browsers', 'gzip, deflate, br, zstd', [...codings, 'identity']],
    ['of a browser without TLS', 'gzip, deflate', ['gzip', 'identity']],
    ['with weights', 'br;q=0.2, gzip;q=0.9, identity;q=0.5', ['gzip', 'identity', 'br']],
    ['with upper case and spaces', ' GZIP ;Q=0.5 ,\tBr', ['br', 'gzip', 'identity']],
    ['with upper case and equal weights', 'GZIP, BR', ['br', 'gzip', 'identity']],
    ['with the lowest weight', 'gzip;q=0.001', ['gzip', 'identity']],
    ['that prefers no coding', 'identity, gzip;q=0.5', ['identity', 'gzip']],
    ['that rejects a coding', 'gzip;q=0', ['identity']],
    ['that rejects a coding with many digits', 'br, gzip;q=0.000', ['br', 'identity']],
    ['that accepts any coding', '*', ['gzip', ...others, 'identity']],
    ['that accepts any coding but gzip', 'gzip;q=0, *', [...others, 'identity']],
    [
      'that accepts any coding, and gives one a lower weight',
      'gzip;q=0.2, *;q=0.5',
      [...others, 'identity', 'gzip'],
    ],
    ['that rejects identity', 'gzip, identity;q=0', ['gzip']],
    ['that rejects identity by *', 'gzip, *;q=0', ['gzip']],
    ['that rejects everything', '*;q=0', []],
    ['that accepts only unknown codings', 'compress, identity;q=0', []],
    ['with unknown codings', 'compress, deflate', ['identity']],
    ['that is empty', '', ['identity']],
    ['that is malformed', ';;q=,,=;', ['identity']],
    ['whose weight is not a number', 'gzip;q=high', ['identity']],
  ])('reads a header %s', (_, header, forms) => {
    // New, and remembered.
    for (let time = 0; time < 2; time++) expect(acceptanceOf(header).forms).toEqual(forms);
    expect(acceptanceOf(header).acceptsIdentity).toBe(forms.includes('identity') || forms.length === 0);
  });

  it('accepts only identity without the header', () => {
    expect(acceptanceOf(undefined)).toEqual({ forms: ['identity'], acceptsIdentity: true });
  });

  it('remembers recent headers, but a limited number of them', () => {
    const browser = acceptanceOf('gzip, deflate, br, zstd');
    expect(acceptanceOf('gzip, deflate, br, zstd')).toBe(browser);
    for (let made = 0; made < 100; made++) acceptanceOf(`gzip, x${made}`);
    expect(acceptanceOf('gzip, deflate, br, zstd')).not.toBe(browser);
    expect(acceptanceOf('gzip, deflate, br, zstd')).toEqual(browser);
  });
});

describe('compress', () => {
  const large = Buffer.from(JSON.stringify(Array.from({ length: 5_000 }, (_, id) => ({ id, name: 'x' }))));

  it.each(codings)(
    'can be decompressed to the same bytes, synchronously or not, and retains no larger buffer: %s',
    async (coding) => {
      const sizes = [0, 2, 65_536, 65_537, large.length];
      for (const body of sizes.map((size) => large.subarray(0, size))) {
        const given = compress(body, coding);
        expect(given instanceof Promise).toBe(body.length > 65_536);
        const bytes = await given;
        expect(bytes.buffer.byteLength).toBe(bytes.length);
        expect(decoded(bytes, coding).equals(body)).toBe(true);
        // Deterministic, since an ETag stands for exact bytes.
        expect(bytes.equals(await compress(body, coding))).toBe(true);
        if (body.length === large.length) expect(bytes.length).toBeLessThan(body.length / 4);
      }
    },
  );

  it('throws for an unknown coding, and names those that there are', () => {
    expect(() => compress(large, 'compress' as Coding)).toThrow(/no compress here: there are .*br,gzip/);
  });
});

describe('createPieceEncoder', () => {
  /** Pieces that compress well and random ones, of all kinds of length: stored, compressed synchronously, and asynchronously. */
  const piece = fc
    .tuple(fc.oneof(fc.nat(40), fc.integer({ min: 1_000, max: 1_050 }), fc.nat(70_000)), fc.boolean())
    .map(([length, isRandom]) => (isRandom ? randomBytes(length) : Buffer.alloc(length, 'event: next\n')));

  it('makes a stream that can be decompressed up to each piece, and that is a complete gzip file at its end', async () => {
    const property = fc.asyncProperty(fc.array(piece, { maxLength: 6 }), async (pieces) => {
      const encoder = createPieceEncoder();
      let sent = Buffer.alloc(0);
      let plain = Buffer.alloc(0);
      for (const each of pieces) {
        sent = Buffer.concat([sent, encoder.add(each, await encoder.blocksOf(each))]);
        plain = Buffer.concat([plain, each]);
        const soFar = gunzipSync(sent, { finishFlush: zlibConstants.Z_SYNC_FLUSH });
        expect(soFar.equals(plain)).toBe(true);
      }
      // Without the option it requires the end, the length and the checksum.
      expect(gunzipSync(Buffer.concat([sent, encoder.end()])).equals(plain)).toBe(true);
    });
    // An empty piece after another one is generated too rarely.
    const examples: [Buffer[]][] = [[[Buffer.from('x'), randomBytes(0)]]];
    await fc.assert(property, { ...fuzzed(20), examples });
  });

  it('lets a reader have each piece as soon as it is added', async () => {
    const encoder = createPieceEncoder();
    const reader = createGunzip();
    const pieces = reader[Symbol.asyncIterator]();
    for (const text of ['event: next\n', 'x'.repeat(5_000), 'the last']) {
      const bytes = Buffer.from(text);
      reader.write(encoder.add(bytes, await encoder.blocksOf(bytes)));
      expect(String((await pieces.next()).value)).toBe(text);
    }
    reader.end(encoder.end());
    expect((await pieces.next()).done).toBe(true);
  });

  it('compresses a large piece in another thread', () => {
    const encoder = createPieceEncoder();
    const isLater = (size: number) => encoder.blocksOf(Buffer.alloc(size)) instanceof Promise;
    expect([65_536, 65_537].map(isLater)).toEqual([false, true]);
  });

  it('says nothing of the system and the time in the header of the stream', () => {
    const encoder = createPieceEncoder();
    const head = [...encoder.add(Buffer.alloc(0), Buffer.alloc(0))];
    expect(head).toEqual([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
    expect(encoder.end()).toHaveLength(10);
  });

  it('adds a few bytes to a small piece, and makes a large one much smaller', async () => {
    const encoder = createPieceEncoder();
    const sizes = [];
    for (const text of ['', ':\n\n', 'x'.repeat(1_023), 'x'.repeat(1_024)]) {
      const bytes = Buffer.from(text);
      sizes.push(encoder.add(bytes, await encoder.blocksOf(bytes)).length - bytes.length);
    }
    // The first includes the header of the stream.
    expect(sizes.slice(0, 3)).toEqual([20, 10, 10]);
    expect(sizes[3]).toBeLessThan(-900);
  });
});

it(`prefers ${best} if the client gives all codings the same weight`, () => {
  expect(acceptanceOf([...codings].reverse().join()).forms[0]).toBe(best);
});
