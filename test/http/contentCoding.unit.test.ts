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
  it('knows what this Node has, the best first', () => {
    expect(codings).toEqual(hasZstd ? ['zstd', 'br', 'gzip'] : ['br', 'gzip']);
  });

  it.each([
    ['of today’s browsers', 'gzip, deflate, br, zstd', [...codings, 'identity']],
    ['of a browser without TLS', 'gzip, deflate', ['gzip', 'identity']],
    ['with preferences', 'br;q=0.2, gzip;q=0.9, identity;q=0.5', ['gzip', 'identity', 'br']],
    ['in any case and any spacing', ' GZIP ;Q=0.5 ,\tBr', ['br', 'gzip', 'identity']],
    ['in capitals, liking all as well', 'GZIP, BR', ['br', 'gzip', 'identity']],
    ['with the least preference', 'gzip;q=0.001', ['gzip', 'identity']],
    ['that prefers it plain', 'identity, gzip;q=0.5', ['identity', 'gzip']],
    ['that rejects one', 'gzip;q=0', ['identity']],
    ['that rejects one in many digits', 'br, gzip;q=0.000', ['br', 'identity']],
    ['that takes anything', '*', ['gzip', ...others, 'identity']],
    ['that takes anything but gzip', 'gzip;q=0, *', [...others, 'identity']],
    ['that takes anything, and names one', 'gzip;q=0.2, *;q=0.5', [...others, 'identity', 'gzip']],
    ['that must have it compressed', 'gzip, identity;q=0', ['gzip']],
    ['that must have it compressed, otherwise', 'gzip, *;q=0', ['gzip']],
    ['that takes nothing', '*;q=0', []],
    ['that takes nothing that there is', 'compress, identity;q=0', []],
    ['that takes what there is not', 'compress, deflate', ['identity']],
    ['that says nothing', '', ['identity']],
    ['that makes no sense', ';;q=,,=;', ['identity']],
    ['whose preference is no number', 'gzip;q=high', ['identity']],
  ])('reads a header %s', (_, header, forms) => {
    // Whether it is new or has come before.
    for (let time = 0; time < 2; time++) expect(acceptanceOf(header).forms).toEqual(forms);
    expect(acceptanceOf(header).acceptsIdentity).toBe(forms.includes('identity') || forms.length === 0);
  });

  it('takes who has no such header to read it as it is', () => {
    expect(acceptanceOf(undefined)).toEqual({ forms: ['identity'], acceptsIdentity: true });
  });

  it('remembers what came before, and not all that a client can make up', () => {
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
    'gives the bytes back, at once or later, and holds on to nothing else: %s',
    async (coding) => {
      for (const body of [Buffer.alloc(0), Buffer.from('{}'), large.subarray(0, 65_536), large]) {
        const given = compress(body, coding);
        expect(given instanceof Promise).toBe(body.length > 65_536);
        const bytes = await given;
        expect(bytes.buffer.byteLength).toBe(bytes.length);
        expect(decoded(bytes, coding).equals(body)).toBe(true);
        // A tag stands for the bytes.
        expect(bytes.equals(await compress(body, coding))).toBe(true);
        if (body === large) expect(bytes.length).toBeLessThan(body.length / 4);
      }
    },
  );

  it('says that there is no such coding', () => {
    expect(() => compress(large, 'compress' as Coding)).toThrow(/no compress here: there are .*br,gzip/);
  });
});

describe('a stream of pieces', () => {
  /** Of what is compressible and what is not, of each kind of length: stored, compressed at once, compressed later. */
  const piece = fc
    .tuple(fc.oneof(fc.nat(40), fc.integer({ min: 1_000, max: 1_050 }), fc.nat(70_000)), fc.boolean())
    .map(([length, isRandom]) => (isRandom ? randomBytes(length) : Buffer.alloc(length, 'event: next\n')));

  it('can be read up to where it is, at each piece, and is a whole gzip file at its end', async () => {
    const property = fc.asyncProperty(fc.array(piece, { maxLength: 6 }), async (pieces) => {
      const encoder = createPieceEncoder();
      let sent = Buffer.alloc(0);
      let plain = Buffer.alloc(0);
      for (const each of pieces) {
        sent = Buffer.concat([sent, encoder.add(each, await encoder.blocksOf(each))]);
        plain = Buffer.concat([plain, each]);
        const sofar = gunzipSync(sent, { finishFlush: zlibConstants.Z_SYNC_FLUSH });
        expect(sofar.equals(plain)).toBe(true);
      }
      // Without an option it insists on the end, the length and the sum.
      expect(gunzipSync(Buffer.concat([sent, encoder.end()])).equals(plain)).toBe(true);
    });
    // Nothing behind something is drawn too rarely.
    const examples: [Buffer[]][] = [[[Buffer.from('x'), randomBytes(0)]]];
    await fc.assert(property, { ...fuzzed(20), examples });
  });

  it('gives a reader each piece as it comes', async () => {
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

  it('adds a few bytes to a piece that is too small to gain, and takes most off a large one', async () => {
    const encoder = createPieceEncoder();
    const sizes = [];
    for (const text of ['', ':\n\n', 'x'.repeat(1_023), 'x'.repeat(1_024)]) {
      const bytes = Buffer.from(text);
      sizes.push(encoder.add(bytes, await encoder.blocksOf(bytes)).length - bytes.length);
    }
    // The first has the head of the stream.
    expect(sizes.slice(0, 3)).toEqual([20, 10, 10]);
    expect(sizes[3]).toBeLessThan(-900);
  });
});

it(`prefers ${best} where a client likes all as well`, () => {
  expect(acceptanceOf([...codings].reverse().join()).forms[0]).toBe(best);
});
