/** A request to one of both APIs as code, in the languages of its clients. */

import { type Code, placeholders } from './code.ts';

interface Request {
  readonly method: string;
  /** The path and the query. */
  readonly target: string;
  readonly body: unknown;
}

/** What to copy and run, without any package. */
export function samplesOf({ method, target, body }: Request): Readonly<Record<string, Code>> {
  const url = placeholders.origin + target;
  const json = body === undefined ? undefined : JSON.stringify(body);
  const headers: [name: string, value: string][] = [['Authorization', `Bearer ${placeholders.token}`]];
  if (json) headers.push(['Content-Type', 'application/json']);
  return {
    curl: { language: 'bash', text: curl(url, headers, json) },
    Python: { language: 'python', text: python(method, url, headers, json) },
    JavaScript: {
      language: 'javascript',
      text: `${javascript(method, url, headers, json)}\n${target === '/graphql' ? graphqlData : restData}`,
    },
  };
}

const restData = `const { data, error } = await response.json();
if (error) throw new Error(error);
console.log(data);`;
const graphqlData = `const { data, errors } = await response.json();
if (errors) throw new Error(errors[0].message);
console.log(data);`;

type Headers = readonly (readonly [name: string, value: string])[];

function curl(url: string, headers: Headers, json: string | undefined): string {
  const options = headers.map(([name, value]) => `-H '${name}: ${value}'`);
  return [`curl '${url}'`, ...options, ...(json ? [`-d '${json}'`] : [])].join(' \\\n  ');
}

function python(method: string, url: string, headers: Headers, json: string | undefined): string {
  const lines = headers.map(([name, value]) => `        '${name}': '${value}',`);
  return `import json
from urllib.request import Request, urlopen

request = Request(
    '${url}',
    method='${method}',
    headers={
${lines.join('\n')}
    },${json ? `\n    data=b'${json}',` : ''}
)
with urlopen(request) as response:
    print(json.load(response)['data'])`;
}

function javascript(method: string, url: string, headers: Headers, json: string | undefined): string {
  const lines = headers.map(([name, value]) => `    ${/^\w+$/.test(name) ? name : `'${name}'`}: '${value}',`);
  return `const response = await fetch('${url}', {
  method: '${method}',
  headers: {
${lines.join('\n')}
  },${json ? `\n  body: '${json}',` : ''}
});`;
}
