/** Where servers are reached. */

/**
 * The origin by which this machine reaches a server: one that listens on every address is reached by its own. An IPv6
 * address stands in brackets (RFC 3986, section 3.2.2).
 */
export function originOf(host: string, port: number): string {
  const bracketed = host.includes(':') ? `[${host}]` : host;
  return `http://${ownAddress[canonical(bracketed)] ?? bracketed}:${port}`;
}

/** Where a server is found that listens everywhere; the last is the first as IPv6 writes it. */
const ownAddress: Readonly<Record<string, string>> = {
  '0.0.0.0': '127.0.0.1',
  '[::]': '[::1]',
  '[::ffff:0:0]': '127.0.0.1',
};

/** Whether a value of HOST listens on every address of the machine. */
export function isEverywhere(host: string): boolean {
  return Object.hasOwn(ownAddress, canonical(host.includes(':') ? `[${host}]` : host));
}

/** An address in the one form that URLs have for it: the system takes `0` for `0.0.0.0` as well. */
function canonical(host: string): string {
  const url = `http://${host}`;
  return URL.canParse(url) ? new URL(url).hostname : host;
}
