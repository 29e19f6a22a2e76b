/** Exports sessions as comma-separated values: those of the page, or all of the range, which are read page by page. */

import { useClient } from '@urql/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { DttSessionFilter } from '../../generated/graphql.ts';
import { once } from '../api/once.ts';
import { counted } from '../parts/counted.ts';
import { messageOf } from '../parts/loaded.tsx';
import { download } from './download.ts';
import { sessionsAsCsv } from './exported.ts';
import { number } from './figures.ts';
import { historySessions, type SessionPage } from './queries.ts';

interface SessionsCsvProps {
  where: DttSessionFilter;
  page: SessionPage;
  /** Without the extension. */
  fileName: string;
  /** Whether the page of the address has not arrived yet. */
  isPending: boolean;
}

/** The largest page that the gateway gives. */
const pageSize = 100;

interface Progress {
  readonly read: number;
  readonly of: number;
}

export function SessionsCsv({ where, page: { nodes, totalCount }, fileName, isPending }: SessionsCsvProps) {
  const { progress, outcome, start, stop } = useExport(where, fileName);
  if (totalCount === 0) return null;
  return (
    <div class="history-csv">
      <button
        type="button"
        disabled={isPending}
        onClick={() => download(`${fileName}-page.csv`, [sessionsAsCsv.head, sessionsAsCsv.lines(nodes)])}
      >
        Save this page as CSV ({number(nodes.length)})
      </button>
      {/* One button serves for both, so that the keyboard focus stays on it. */}
      {(totalCount > nodes.length || progress) && (
        <button type="button" disabled={isPending && !progress} onClick={progress ? stop : start}>
          {progress ? 'Stop' : `Save all as CSV (${number(totalCount)})`}
        </button>
      )}
      {progress && (
        <label>
          {number(progress.read)} of {number(progress.of)} sessions are read{' '}
          <progress value={progress.read} max={Math.max(progress.of, 1)} />
        </label>
      )}
      <p role="status" class="hint">
        {progress ? 'The sessions are being read.' : outcome}
      </p>
    </div>
  );
}

function useExport(where: DttSessionFilter, fileName: string) {
  const client = useClient();
  const [progress, setProgress] = useState<Progress>();
  const [outcome, setOutcome] = useState('');
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  async function start() {
    const stopping = new AbortController();
    running.current = stopping;
    setProgress({ read: 0, of: 0 });
    const texts = [sessionsAsCsv.head];
    let read = 0;
    try {
      for await (const page of readPages(client, where)) {
        if (stopping.signal.aborted) break;
        texts.push(sessionsAsCsv.lines(page.nodes));
        read += page.nodes.length;
        setProgress({ read, of: page.totalCount });
      }
      if (!stopping.signal.aborted) download(`${fileName}.csv`, texts);
      setOutcome(
        stopping.signal.aborted ? 'Stopped: nothing was saved.' : `Saved: ${counted(read, 'session')}.`,
      );
    } catch (error) {
      setOutcome(`Nothing was saved: ${error instanceof Error ? error.message : String(error)}`);
    }
    setProgress(undefined);
  }
  return { progress, outcome, start, stop: () => running.current?.abort() };
}

/** Reads all pages. @throws an error with the gateway's message if it does not give a page. */
async function* readPages(
  client: ReturnType<typeof useClient>,
  where: DttSessionFilter,
): AsyncGenerator<SessionPage> {
  let after: string | null | undefined;
  do {
    const variables = { where, first: pageSize, ...(after != null && { after }) };
    const { data, error } = await client.query(historySessions, variables, once).toPromise();
    const page = data?.dttSessions;
    if (!page) throw new Error(error ? messageOf(error) : 'The gateway gave no sessions.');
    yield page;
    after = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : undefined;
  } while (after != null);
}
