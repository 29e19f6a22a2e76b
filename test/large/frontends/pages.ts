/** Builds the pages of docs/clients.md as frontends are built, and serves them. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { resolve } from 'node:path';
import { build, type Plugin } from 'vite';
import { compileScript, parse } from 'vue/compiler-sfc';
import { readPage } from '../../docs/markdown.ts';
import { listen } from '../../support/listen.ts';

const folder = resolve('test/large/frontends');
const example = `${folder}/generated/docs/app`;

interface Kind {
  /** A module of the page, or of this folder. */
  readonly module: string;
  /** What the page says to write instead of what, and what that imports. */
  readonly instead?: readonly [from: string, to: string, imports: string];
  readonly mode?: string;
}

const text = readPage('docs/clients.md');

/** What the page says to write, by its beginning. */
function printed(beginning: string): string {
  const at = text.indexOf(`\`${beginning}`) + 1;
  if (at === 0) throw new Error(`the page does not have ${beginning}`);
  return text.slice(at, text.indexOf('`', at));
}

/** Whole pages, with a list and an activation. */
export const apps = {
  urql: { module: 'urql.tsx' },
  'Apollo Client': { module: 'apollo.tsx' },
  Relay: { module: 'relay.tsx' },
};

const hashOf = "import { hashOf } from './trusted.ts';";
const wsLink = `import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { socket } from './live.ts';`;

/** The same with trusted documents. */
export const trusted: Readonly<Record<string, Kind>> = {
  'urql with trusted documents': {
    module: 'urql.tsx',
    instead: ['persistedExchange()', printed('persistedExchange({'), hashOf],
  },
  'Apollo Client with trusted documents': {
    module: 'apollo.tsx',
    instead: ['new PersistedQueryLink({ sha256 })', printed('new PersistedQueryLink('), hashOf],
  },
};

/** Pages with a subscription. */
export const livePages: Readonly<Record<string, Kind>> = {
  ...apps,
  'urql over a WebSocket': {
    module: 'urql.tsx',
    instead: [
      'retryExchange({',
      `${printed('overSocket')}, retryExchange({`,
      "import { overSocket } from './urqlSocket.ts';",
    ],
  },
  'Apollo Client over a WebSocket': {
    module: 'apollo.tsx',
    instead: ['link: http', printed('link: ApolloLink.split'), wsLink],
  },
  "Vue's urql": { module: '../../../../vue.ts' },
  'graphql-ws': { module: '../../../../plain.ts' },
  fetch: { module: '../../../../plain.ts', mode: 'fetch' },
};

/** Extracts the programs, and checks their types. */
function prepare(): void {
  const run = (cwd: string, ...parameters: string[]) =>
    execFileSync(process.execPath, parameters, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
  run('.', '--import', 'tsx', 'test/docs/extract.ts', `${folder}/generated/docs`, 'app', 'frontends');
  run(example, resolve('test/large/node_modules/relay-compiler/cli.js'), 'relay.config.json');
  run('.', 'node_modules/typescript/bin/tsc', '--project', folder);
}

/** The bundle of a page, with the warnings that its packages give while it is developed. */
async function bundle({ module, instead, mode = 'development' }: Kind): Promise<string> {
  const [from, to, imports] = instead ?? ['', '', ''];
  let isWritten = instead === undefined;
  const translate: Plugin = {
    name: 'documented',
    enforce: 'pre',
    // Before any transform, since Babel lays out the code anew.
    load(id) {
      if (from === '' || !id.startsWith(`${example}/src/`)) return undefined;
      const code = readFileSync(id, 'utf8');
      if (!code.includes(from)) return undefined;
      isWritten = true;
      return `${imports}\n${code.replace(from, to)}`;
    },
    transform(code, id) {
      if (!id.endsWith('.vue')) return undefined;
      const { content } = compileScript(parse(code).descriptor, { id, inlineTemplate: true });
      return { code: content, moduleType: 'ts' };
    },
  };
  const result = await build({
    logLevel: 'error',
    mode,
    define: { 'process.env.NODE_ENV': '"development"' },
    plugins: [translate],
    build: {
      write: false,
      minify: false,
      target: 'es2023',
      rolldownOptions: { input: resolve(example, 'src', module) },
    },
  });
  const [built] = [result].flat();
  if (!built || !('output' in built)) throw new Error(`${module} was not built`);
  if (!isWritten) throw new Error(`${module} has no ${from}`);
  return built.output[0].code;
}

/** Serves all pages. */
export async function servePages() {
  prepare();
  const bundles = new Map<string, string>();
  const before = process.cwd();
  // Babel looks for its plugins where Vite is started.
  process.chdir(example);
  for (const [name, kind] of Object.entries({ ...livePages, ...trusted }))
    bundles.set(name, await bundle(kind));
  process.chdir(before);
  const server = createServer((request, response) => {
    const { pathname, search, searchParams } = new URL(request.url ?? '', 'http://pages');
    if (pathname === '/') {
      response.setHeader('Content-Type', 'text/html');
      response.end(
        `<link rel="icon" href="data:,"><body><script type="module" src="/page.js${search}"></script>`,
      );
      return;
    }
    const code = bundles.get(searchParams.get('page') ?? '') ?? '';
    response.setHeader('Content-Type', 'text/javascript');
    response.end(
      code
        .replaceAll('http://localhost:4000', searchParams.get('gateway') ?? '')
        .replaceAll('YOUR_API_TOKEN', searchParams.get('token') ?? ''),
    );
  });
  const origin = await listen(server);
  return {
    /** The trusted documents. */
    manifest: `${example}/src/gql/persisted-documents.json`,
    origin,
    /** The address of a page for a gateway and a token. */
    address: (page: string, gateway: string, token: string) =>
      `${origin}/?${new URLSearchParams({ page, gateway, token })}`,
    close: () => server.close(),
  };
}
