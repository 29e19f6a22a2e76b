import { describe, expect, it } from 'vitest';
import { largestId, readId } from '../../src/database/ids.ts';

describe('an id', () => {
  it.each([
    ['1', 1],
    ['20', 20],
    ['2147483647', largestId],
  ])('is parsed from %s', (text, id) => expect(readId(text)).toBe(id));

  it.each(['', '0', '01', '-1', '+1', '1.0', '1e3', ' 1', '1\n', '١', '2147483648', '9'.repeat(400)])(
    'is not parsed from %j',
    (text) => expect(readId(text)).toBeUndefined(),
  );
});
