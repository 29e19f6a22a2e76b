/** A dialog that asks before something is done. */

import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';

interface DialogProps {
  title: string;
  /** What the button says that does it, also while it is being done: `['Activate', 'Activating…']`. */
  action: readonly [name: string, underway: string];
  /** Whether it cannot be undone. */
  isFinal?: boolean;
  /** Does it. @returns why it was not done; undefined if it was, and the dialog closes. */
  onConfirm(): Promise<string | undefined>;
  /** Called when the dialog has closed, also by Escape. */
  onClose(): void;
  children: ComponentChildren;
}

export function Dialog(props: DialogProps) {
  const { title, action, isFinal = false, onConfirm, onClose, children } = props;
  const [name, underway] = action;
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const [isUnderway, setUnderway] = useState(false);
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    // Only `showModal` makes the rest of the page inert.
    dialog.current?.showModal();
  }, []);

  async function confirm() {
    if (isUnderway) return;
    setUnderway(true);
    const failure = await onConfirm();
    setUnderway(false);
    setProblem(failure);
    // Closing gives the focus back to the element that had it.
    if (failure === undefined) dialog.current?.close();
  }
  return (
    <dialog ref={dialog} aria-labelledby={titleId} onClose={onClose}>
      <h2 id={titleId}>{title}</h2>
      {children}
      {problem !== undefined && (
        <p class="note bad" role="alert">
          {problem}
        </p>
      )}
      <div class="buttons">
        <button type="button" onClick={() => dialog.current?.close()}>
          Cancel
        </button>
        <button
          type="button"
          class={isFinal ? 'main final' : 'main'}
          aria-disabled={isUnderway}
          onClick={confirm}
        >
          {isUnderway ? underway : name}
        </button>
      </div>
    </dialog>
  );
}
