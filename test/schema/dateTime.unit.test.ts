import { assertScalarType, parseValue } from 'graphql';
import { describe, expect, it } from 'vitest';
import { schema } from '../../src/schema/schema.ts';

const dateTime = assertScalarType(schema.getType('DateTime'));

describe('a DateTime', () => {
  it.each([
    ['2026-02-17T12:00:00Z', '2026-02-17T12:00:00.000Z'],
    ['2026-02-17T12:00:00.123456Z', '2026-02-17T12:00:00.123Z'],
    ['2026-02-17T13:30:00+01:30', '2026-02-17T12:00:00.000Z'],
    ['2024-02-29T00:00:00-05:00', '2024-02-29T05:00:00.000Z'],
    ['2026-02-17t12:00:00.5z', '2026-02-17T12:00:00.500Z'],
    ['2026-02-17T12:00Z', '2026-02-17T12:00:00.000Z'],
    ['2026-02-17T12:00+02:00', '2026-02-17T10:00:00.000Z'],
    ['2026-02-17T12:00-05:30', '2026-02-17T17:30:00.000Z'],
  ])('is accepted with any offset, and returned in UTC: %s', (input, output) => {
    const instant = dateTime.parseValue(input);
    expect(dateTime.serialize(instant)).toBe(output);
    expect(dateTime.parseLiteral(parseValue(JSON.stringify(input)))).toEqual(instant);
    // Compiled code parses the values of variables a second time.
    expect(dateTime.parseValue(instant)).toBe(instant);
  });

  it.each(['2026-02-17T12:00:00', '2026-02-17', '2026-02-30T12:00:00Z', '2026-02-17T24:00:00Z', 'now', ''])(
    'is rejected with a description of the format when it is %j',
    (input) => {
      const message =
        'DateTime must be ISO 8601 with an offset from UTC, such as "2026-02-17T12:00:00Z", with a day and a time that exist';
      expect(() => dateTime.parseValue(input)).toThrow(message);
      expect(() => dateTime.parseLiteral(parseValue(JSON.stringify(input)))).toThrow(message);
    },
  );

  it.each([0, 1771329600000, true, null, [], {}])('is rejected when it is not a string: %j', (value) => {
    expect(() => dateTime.parseValue(value)).toThrow('DateTime must be ISO 8601');
  });
});
