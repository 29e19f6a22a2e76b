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
  if (request.target.startsWith('/graphql')) return faultOfGraphql(type, response, others);
  if (!/^\/api\/v1($|[/?])/.test(request.target))
    return type.startsWith('text/plain') ? undefined : `it is ${type}`;
  if (type !== 'application/json; charset=utf-8') return `it is ${type}`;
  return faultOfRest(response, others);
}

const expectedStatuses = new Set([200, 304, 400, 401, 403, 404, 405, 406, 408, 413, 415]);

function faultOfRest({ status, body }: FuzzResponse, others: readonly Marks[]): string | undefined {
  const envelope = parse(body);
  const keys = isRecord(envelope) ? Object.keys(envelope).join() : 'none';
  if (!isRecord(envelope)) return 'it is no envelope';
  if (status !== 200) {
    return keys === 'ok,error' && envelope.ok === false && typeof envelope.error === 'string'
      ? undefined
      : `the envelope of an error has ${keys}`;
  }
  if (keys !== 'ok,data' || envelope.ok !== true) return `the envelope has ${keys}`;
  // A list also echoes limit and offset of the request, which may be any number.
  const { data } = envelope;
  return findForeign(isRecord(data) && 'pagination' in data ? data.data : data, others);
}

function faultOfGraphql(type: string, { body }: FuzzResponse, others: readonly Marks[]): string | undefined {
  if (/^(text\/event-stream|multipart\/mixed)/.test(type)) {
    return body.includes('INTERNAL_SERVER_ERROR') ? `it is ${body}` : undefined;
  }
  if (!/^application\/(graphql-response\+)?json/.test(type)) return `it is ${type}`;
  const result = parse(body);
  if (!isRecord(result)) return 'it is no result';
  const { data, errors, ...rest } = result;
  if (Object.keys(rest).length > 0) return `the result has ${Object.keys(rest)}`;
  if (data === undefined && errors === undefined) return 'the result is empty';
  if (errors !== undefined && (!Array.isArray(errors) || errors.length === 0))
    return 'the errors are no list';
  for (const error of Array.isArray(errors) ? errors : []) {
    const code: unknown = error?.extensions?.code;
    if (typeof error?.message !== 'string' || error.message === '') return 'an error has no message';
    if (typeof code !== 'string' || !codes.has(code)) return `an error has the code ${code}`;
  }
  return findForeign(data, others);
}

const forbiddenCodes: readonly ErrorCode[] = [
  'INTERNAL_SERVER_ERROR',
  'BAD_GATEWAY',
  'TOO_MANY_REQUESTS',
  'FORBIDDEN',
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
