/** The deprecation of a route, and the headers that announce it to clients (RFC 9745, RFC 8594). */

/** The arguments of `@http` about a deprecation: days and links as text. */
export interface DeprecationArguments {
  readonly deprecated?: string;
  readonly sunset?: string;
  readonly link?: string;
  readonly successor?: string;
}

export interface Deprecation extends DeprecationArguments {
  readonly deprecated: string;
  /** The headers of every response of the route. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Reads the deprecation of a route from the arguments of `@http`.
 * @returns undefined for a route that is not deprecated.
 * @throws {RangeError} for a day that does not exist.
 */
export function readDeprecation({ deprecated, ...others }: DeprecationArguments): Deprecation | undefined {
  if (deprecated === undefined) return undefined;
  const { sunset, link, successor } = others;
  const links = [
    ...(link === undefined ? [] : [`<${link}>; rel="deprecation"; type="text/html"`]),
    ...(successor === undefined ? [] : [`<${successor}>; rel="successor-version"`]),
  ];
  return {
    deprecated,
    ...others,
    headers: {
      // A date of structured fields (RFC 9651, section 3.3.7).
      Deprecation: `@${firstMomentOf(deprecated).getTime() / 1000}`,
      ...(sunset !== undefined && { Sunset: firstMomentOf(sunset).toUTCString() }),
      ...(links.length > 0 && { Link: links.join(', ') }),
    },
  };
}

/** The first moment of a day in UTC. */
function firstMomentOf(text: string): Date {
  const day = new Date(`${text}T00:00:00Z`);
  // A day that the month does not have gives an invalid date, or a date in the next month.
  if (!day.toISOString().startsWith(text)) throw new RangeError(`${text} is no day`);
  return day;
}
