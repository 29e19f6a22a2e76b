/** Answers that are large and always the same: made when somebody asks, and kept as they are and compressed. */

import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type Answer, revalidated } from '../http/response.ts';
import type { Page } from './page.ts';

/** @param vary the request headers that the answer depends on. */
export function largeAnswer(make: () => Promise<Answer>, vary = 'Accept-Encoding'): Page {
  const forms = new Map<'gzip' | 'identity', Promise<Answer>>();
  return ({ request }) => {
    const encoding = acceptsGzip(request.headers['accept-encoding']) ? 'gzip' : 'identity';
    const known = forms.get(encoding);
    if (known) return known;
    const form = make()
      .then((answer) => (encoding === 'gzip' ? compress(answer) : answer))
      .then((answer) => revalidated(answer, vary));
    forms.set(encoding, form);
    // What failed once need not fail again.
    form.catch(() => forms.delete(encoding));
    return form;
  };
}

/** RFC 9110, section 12.5.3: named, and not with a weight of zero. */
function acceptsGzip(header: string | string[] | undefined): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(header ?? ''));
}

async function compress({ body, headers, ...answer }: Answer): Promise<Answer> {
  const smaller = await promisify(gzip)(body);
  return {
    ...answer,
    body: smaller,
    headers: { ...headers, 'Content-Encoding': 'gzip', 'Content-Length': smaller.length },
  };
}
