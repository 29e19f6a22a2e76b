/**
 * The console speaks English, so dates have English words as well. Their order and the hours, 12 or 24, are those of the
 * browser where it speaks English too; otherwise a date is as most of the world has it, and the hours are the browser's.
 */

const { locale, hourCycle } = new Intl.DateTimeFormat(undefined, { hour: 'numeric' }).resolvedOptions();

/** For everything that is written with words; numbers alone are written as the browser writes them. */
export const language = new Intl.Locale(/^en\b/.test(locale) ? locale : 'en-GB', {
  ...(hourCycle && { hourCycle }),
});
