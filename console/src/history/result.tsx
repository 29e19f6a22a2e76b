/** Whether something was passed: a sign, a word and a colour. */

import { resultName } from './names.ts';

export function Result({ passed }: { passed: boolean | null | undefined }) {
  const kind = passed == null ? 'unknown' : passed ? 'good' : 'failed';
  return (
    <span class={`result ${kind}`}>
      <span aria-hidden="true">{{ unknown: '?', good: '✓', failed: '✗' }[kind]}</span> {resultName(passed)}
    </span>
  );
}
