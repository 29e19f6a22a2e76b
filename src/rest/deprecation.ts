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
 * @throws for an invalid day or link, and for a sunset before the deprecation.
 */
export function readDeprecation({
  deprecated,
  sunset,
  link,
  successor,
}: DeprecationArguments): Deprecation | undefined {
  if (deprecated === undefined) {
    const [name] = Object.entries({ sunset, link, successor }).find(([, value]) => value !== undefined) ?? [];
    if (name !== undefined) throw new Error(`${name} needs deprecated, the day since which it is`);
    return undefined;
  }
  const since = readDay('deprecated', deprecated);
  const end = sunset === undefined ? undefined : readDay('sunset', sunset);
  // RFC 9745, section 4: the sunset must not be earlier than the deprecation.
  if (end && end < since) throw new Error(`sunset: "${sunset}" is before deprecated: "${deprecated}"`);
  const links = [
    ...(link === undefined ? [] : [`<${readTarget('link', link)}>; rel="deprecation"; type="text/html"`]),
    ...(successor === undefined ? [] : [`<${readTarget('successor', successor)}>; rel="successor-version"`]),
  ];
  return {
    deprecated,
    ...(sunset !== undefined && { sunset }),
    ...(link !== undefined && { link }),
    ...(successor !== undefined && { successor }),
    headers: {
      // A date of structured fields (RFC 9651, section 3.3.7).
      Deprecation: `@${since.getTime() / 1000}`,
      ...(end && { Sunset: end.toUTCString() }),
      ...(links.length > 0 && { Link: links.join(', ') }),
    },
  };
}

/** The first moment of the day in UTC. */
function readDay(name: string, text: string): Date {
  const day = new Date(`${text}T00:00:00Z`);
  // A day that the month does not have gives an invalid date, or a date in the next month.
  if (Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== text)
    throw new Error(`${name}: "${text}" is not a day such as "2026-01-31"`);
  return day;
}

/** The target of a link. Only characters of RFC 3986 are allowed, none of which would end the target in the header. */
function readTarget(name: string, text: string): string {
  if (!/^(https?:\/)?\/[\w\-.~:/?#[\]@!$&'()*+,;=%]*$/.test(text))
    throw new Error(`${name}: "${text}" is not a URL such as "https://example.com/news" or "/api/v1/dtt"`);
  return text;
}
