/** Checks every response to a random request: it must be well-formed, no internal error, and without data of other accounts. */

import { type ErrorCode, statusOf } from '../../src/errors.ts';
import type { FuzzRequest } from './requests.ts';

export interface FuzzResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** How the data of an account is recognized: by a word in each of its texts, and by the range of its ids. */
export interface Marks {
  readonly word: string;
  readonly firstId: number;
  readonly lastId: number;
}

/** The first thing that is wrong with the response, if anything is. */
export function findFault(
  request: FuzzRequest,
  response: FuzzResponse,
  others: readonly Marks[],
): string | undefined {
  const { status, headers, body } = response;
  if (!expectedStatuses.has(status)) return `the status is ${status}`;
  const text = `${JSON.stringify(headers)}${body}`;
  const word = others.find((other) => text.includes(other.word))?.word;
  if (word !== undefined) return `it says ${word}`;
  if (status === 304 || request.method === 'HEAD') return body === '' ? undefined : 'it has a body';
  const type = String(headers['content-type']);
  if (!/^application\/(graphql-response\+)?json/.test(type))
    return body.includes('INTERNAL_SERVER_ERROR') ? `it is ${body}` : undefined;
  const content = parse(body);
  if (!isRecord(content)) return 'it is no object';
  return request.target.startsWith('/graphql')
    ? faultOfGraphql(content, others)
    : faultOfRest(status, content, others);
}

const expectedStatuses = new Set([200, 304, 400, 401, 403, 404, 405, 406, 408, 413, 415]);

type Content = Readonly<Record<string, unknown>>;

function faultOfRest(status: number, { ok, data, error }: Content, others: readonly Marks[]) {
  if (ok !== (status === 200)) return `ok is ${ok}`;
  if (!ok) return typeof error === 'string' ? undefined : 'it has no error';
  // A list also echoes limit and offset of the request, which may be any number.
  return findForeign(isRecord(data) && 'pagination' in data ? data.data : data, others);
}

function faultOfGraphql({ data, errors = [] }: Content, others: readonly Marks[]): string | undefined {
  if (!Array.isArray(errors)) return 'the errors are no list';
  for (const error of errors) {
    const code: unknown = error?.extensions?.code;
    if (typeof code !== 'string' || !codes.has(code)) return `an error has the code ${code}`;
  }
  return findForeign(data, others);
}

const forbiddenCodes: readonly ErrorCode[] = [
  'INTERNAL_SERVER_ERROR',
  'BAD_GATEWAY',
  'TOO_MANY_REQUESTS',
  'PERSISTED_QUERY_NOT_SUPPORTED',
];
const codes = new Set(
  Object.keys(statusOf).filter((code) => !forbiddenCodes.some((other) => other === code)),
);

/** Finds an id of another account anywhere in the data: as a number, or within a global id or a cursor. */
function findForeign(data: unknown, others: readonly Marks[]): string | undefined {
  if (typeof data === 'number')
    return others.some(({ firstId, lastId }) => data >= firstId && data <= lastId)
      ? `it has ${data}`
      : undefined;
  if (typeof data === 'string') {
    if (!/^[\w-]{8,}$/.test(data)) return undefined;
    const numbers = Buffer.from(data, 'base64url').toString('latin1').match(/\d{6}/g) ?? [];
    return numbers.map((number) => findForeign(Number(number), others)).find((fault) => fault !== undefined);
  }
  if (typeof data !== 'object' || data === null) return undefined;
  for (const value of Object.values(data)) {
    const fault = findForeign(value, others);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
