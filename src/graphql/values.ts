/** The values of variables: how deep and how many they may be, and their exact text. */

/** How many levels the values of variables may have: many more than a filter may. */
const deepestValue = 64;

/** Whether values have too many levels. Functions that read them call themselves for each level, and run out of stack. */
export function isTooDeep(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth > deepestValue || Object.values(value).some((each) => isTooDeep(each, depth + 1));
}

/** The same for a whole request, in which the values of variables are one level further down. */
export const isRequestTooDeep = (request: unknown): boolean => isTooDeep(request, -1);

/** How many values variables may have. Reading one takes up to 10 µs. */
const mostValues = 5_000;
export const tooManyValues = `The variables have more than ${mostValues} values; at most ${mostValues} are allowed`;

/** Whether there are more than `most` values. Those within lists and objects count as well. */
export function hasTooManyValues(values: unknown, most = mostValues): boolean {
  const open = [values];
  let count = 0;
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    const within = Object.values(value);
    count += within.length;
    if (count > most) return true;
    for (const each of within) open.push(each);
  }
  return false;
}

/**
 * The JSON text of a value that was read from JSON; no other value has the same text. Undefined for a value that is too deep to be
 * written, or has a number such as 1e999, which is read as `Infinity` and written as null.
 */
export function exactText(value: unknown): string | undefined {
  if (isRequestTooDeep(value)) return undefined;
  let isExact = true;
  const text = JSON.stringify(value, (_name, each) => {
    if (each === Number.POSITIVE_INFINITY || each === Number.NEGATIVE_INFINITY) isExact = false;
    return each;
  });
  return isExact ? text : undefined;
}
