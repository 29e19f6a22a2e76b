/** Where servers are reached. */

/**
 * The origin by which this machine reaches a server: one that listens on every address is reached by its own. An IPv6
 * address stands in brackets (RFC 3986, section 3.2.2).
 */
export function originOf(host: string, port: number): string {
  const bracketed = host.includes(':') ? `[${host}]` : host;
  return `http://${ownAddress[canonicalHost(bracketed)] ?? bracketed}:${port}`;
}

/** Where a server is found that listens everywhere; the last is the first as IPv6 writes it. */
const ownAddress: Readonly<Record<string, string>> = {
  '0.0.0.0': '127.0.0.1',
  '[::]': '[::1]',
  '[::ffff:0:0]': '127.0.0.1',
};

/** Whether a value of HOST listens on every address of the machine. */
export function isEverywhere(host: string): boolean {
  return Object.hasOwn(ownAddress, canonicalHost(host.includes(':') ? `[${host}]` : host));
}

/**
 * The host as URLs have it: a name in lower case, an IPv4 address in its usual form, where the system takes `10.1` for
 * `10.0.0.1` and `0` for `0.0.0.0`. An IPv6 address without brackets stays as it is.
 */
export function canonicalHost(host: string): string {
  const url = `http://${host}`;
  return URL.canParse(url) ? new URL(url).hostname : host;
}
