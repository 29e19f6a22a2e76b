/** What the three clients have in common: they know a base URL and a token, speak plain HTTP, and write down what they got. */

/** A response as a client sees it. */
export interface Told {
  readonly method: string;
  /** Below the base URL, with its query. */
  readonly path: string;
  readonly status: number;
  readonly contentType: string | null;
  /** The JSON of the body, or its text if it is none. */
  readonly body: unknown;
}

export interface Client {
  readonly transcript: readonly Told[];
  get(path: string): Promise<Told>;
  /** Sends a JSON body. */
  send(method: 'POST' | 'PATCH', path: string, body: unknown): Promise<Told>;
}

/** @param base with the version segment; the only thing that changes when a gateway comes in between. */
export function createClient(base: string, token: string): Client {
  const transcript: Told[] = [];

  async function ask(method: string, path: string, body?: unknown): Promise<Told> {
    const response = await fetch(base + path, {
      method,
      headers: {
        Authorization: `Bearer ${token}`,
        Accept: 'application/json',
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    const contentType = response.headers.get('Content-Type');
    const told = { method, path, status: response.status, contentType, body: parsed(text) };
    transcript.push(told);
    return told;
  }

  return { transcript, get: (path) => ask('GET', path), send: ask };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** The data of the envelope, if it is a record. */
export function recordOf({ body }: Told): Record<string, unknown> | undefined {
  const data = isObject(body) && body.ok === true ? body.data : undefined;
  return isObject(data) && !Array.isArray(data) ? data : undefined;
}

/** The records of a list, whether it is paginated or bare. */
export function listOf({ body }: Told): Record<string, unknown>[] {
  const data = isObject(body) ? body.data : undefined;
  const records = isObject(data) && !Array.isArray(data) ? data.data : data;
  return Array.isArray(records) ? records.filter(isObject) : [];
}
