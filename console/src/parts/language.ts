/**
 * The locale of dates and times. The console is in English, so the names of months and days are too. A browser whose language
 * is a variety of English decides the order of a date; for any other, it is the British order. Hours count to 12 or to 24 as
 * the browser has them either way.
 */

const { locale, hourCycle } = new Intl.DateTimeFormat(undefined, { hour: 'numeric' }).resolvedOptions();

/** The locale for text with words. Plain numbers are in the locale of the browser. */
export const language = new Intl.Locale(/^en\b/.test(locale) ? locale : 'en-GB', {
  ...(hourCycle && { hourCycle }),
});
