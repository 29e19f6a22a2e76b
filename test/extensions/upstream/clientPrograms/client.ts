/** What the three client programs share: a base URL, a token, plain HTTP, and a record of every response. */

/** A response with the request that it belongs to, as the client records it. */
export interface RecordedResponse {
  readonly method: string;
  /** Relative to the base URL, with the query string. */
  readonly path: string;
  readonly status: number;
  readonly contentType: string | null;
  readonly text: string;
}

export interface Client {
  readonly transcript: readonly RecordedResponse[];
  get(path: string): Promise<RecordedResponse>;
  /** Sends a JSON body. */
  send(method: 'POST' | 'PATCH', path: string, body: unknown): Promise<RecordedResponse>;
}

/** @param base the base URL with the version segment; all that differs between the service and a gateway in front of it. */
export function createClient(base: string, token: string): Client {
  const transcript: RecordedResponse[] = [];

  async function request(method: string, path: string, body?: unknown): Promise<RecordedResponse> {
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
    const recorded = { method, path, status: response.status, contentType, text };
    transcript.push(recorded);
    return recorded;
  }

  return { transcript, get: (path) => request('GET', path), send: request };
}

function bodyOf({ text }: RecordedResponse): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** The data of the envelope, if it is a record. */
export function recordOf(response: RecordedResponse): Record<string, unknown> | undefined {
  const body = bodyOf(response);
  const data = isObject(body) && body.ok === true ? body.data : undefined;
  return isObject(data) && !Array.isArray(data) ? data : undefined;
}

/** The records of a list, whether it is paginated or bare. */
export function listOf(response: RecordedResponse): Record<string, unknown>[] {
  const body = bodyOf(response);
  const data = isObject(body) ? body.data : undefined;
  const records = isObject(data) && !Array.isArray(data) ? data.data : data;
  return Array.isArray(records) ? records.filter(isObject) : [];
}
