/** Numbers as the browser writes them: 1,234.5 or 1.234,5. */

const upToThreeDigits = new Intl.NumberFormat();

/** With up to three digits behind the point. For each one, `toLocaleString` would look for how that is done. */
export const numberText = (value: number): string => upToThreeDigits.format(value);
