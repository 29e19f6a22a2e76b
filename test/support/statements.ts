/** Records the SQL statements that this process sends for requests. */

import pg from 'pg';
import { beforeEach, vi } from 'vitest';

/** Records the statements of each test of the file, in the order in which they are sent. */
export function noteStatements(): string[] {
  const statements: string[] = [];
  beforeEach(() => {
    statements.length = 0;
    const query = pg.Client.prototype.query;
    vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
      this: pg.Client,
      ...given: unknown[]
    ) {
      const [first] = given;
      const text = typeof first === 'object' && first !== null && 'text' in first ? first.text : first;
      // Left out: authentication, which partly runs beside the request, the heartbeats of the change feed, and the statements at
      // the beginning of a connection.
      if (!/"ApiToken"|^SELECT (set_config|pg_backend_pid|pg_is_in_recovery)|^SET /.test(String(text)))
        statements.push(String(text));
      return Reflect.apply(query, this, given);
    });
  });
  return statements;
}
