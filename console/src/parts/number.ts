/** Numbers in the locale of the browser: 1,234.5 or 1.234,5. */

const upToThreeDigits = new Intl.NumberFormat();

/** Writes a number with up to three decimals. `toLocaleString` would be slower: it looks up the format for each number. */
export const numberText = (value: number): string => upToThreeDigits.format(value);
