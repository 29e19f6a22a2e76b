/** Makes a program the active one, once it was said what that means. */

import { useMutation } from '@urql/preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { graphql } from '../api/graphql.ts';
import { useLive } from '../api/useLive.ts';
import { messageOf } from '../parts/loaded.tsx';

/** The program that is active now. */
export const nowActive = graphql(`
  query NowActive {
    viewer {
      id
      scheduleType
      activeDttTemplate {
        id
        databaseId
        name
      }
    }
  }
`);

/** It asks for all that changes, so that everything that shows it is right at once. */
export const activate = graphql(`
  mutation Activate($template: DttTemplateReference!) {
    activateTemplate(template: $template) {
      scheduleTypeChanged
      template {
        id
        name
        isActive
      }
      previousTemplate {
        id
        name
        isActive
      }
      viewer {
        id
        scheduleType
        activeDttTemplate {
          id
          databaseId
          name
        }
      }
    }
  }
`);

export interface Activatable {
  readonly id: string;
  readonly databaseId: number;
  readonly name: string;
  readonly isActive: boolean;
  readonly isImported: boolean;
  readonly viewerCanActivate: boolean;
}

interface ActivateButtonProps {
  program: Activatable;
  onClick(): void;
}

/** The same element before and after, so that the focus stays where it is. */
export function ActivateButton({ program, onClick }: ActivateButtonProps) {
  const { name, isActive, viewerCanActivate } = program;
  if (!viewerCanActivate && !isActive) return <span class="hint">Only its owner can activate it.</span>;
  return (
    <button
      type="button"
      class={isActive ? 'is-active' : 'main'}
      aria-disabled={isActive}
      aria-label={isActive ? `Active now: ${name}` : `Activate ${name}`}
      onClick={() => !isActive && onClick()}
    >
      {isActive ? '✓ Active now' : 'Activate'}
    </button>
  );
}

/** That a program was activated. */
export interface Done {
  readonly id: string;
  /** What has happened, for people. */
  readonly text: string;
}

/** Says it, as long as it is true: another tab may have activated another one since. */
export function Said({ done }: { done: Done | undefined }) {
  const { data } = useLive(nowActive, {});
  const isTrue = done !== undefined && data?.viewer?.activeDttTemplate?.id === done.id;
  return (
    <p role="status" class="said">
      {isTrue && done.text}
    </p>
  );
}

interface ActivationProps {
  /** What is to be activated. */
  program: Activatable;
  /** @param done undefined when nothing was. */
  onEnd(done: Done | undefined): void;
}

export function Activation({ program, onEnd }: ActivationProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  const done = useRef<Done>(undefined);
  const [{ fetching, error }, run] = useMutation(activate);
  useEffect(() => {
    // Opened by script, as only that keeps the rest of the page out of reach.
    dialog.current?.showModal();
  }, []);

  async function confirm() {
    if (fetching) return;
    const { data } = await run({ template: { databaseId: program.databaseId } });
    const activated = data?.activateTemplate;
    if (!activated) return;
    const { template, previousTemplate, scheduleTypeChanged } = activated;
    const text = [
      `${template?.name ?? program.name} is the active program now`,
      previousTemplate && `, in place of ${previousTemplate.name}`,
      scheduleTypeChanged ? '. Your schedule is single now.' : '.',
    ].join('');
    done.current = { id: program.id, text };
    // It gives the focus back to where it was.
    dialog.current?.close();
  }
  return (
    <dialog
      ref={dialog}
      class="activation"
      aria-labelledby={title}
      // Also by Escape.
      onClose={() => onEnd(done.current)}
    >
      <h2 id={title}>Activate {program.name}?</h2>
      <Consequences of={program} />
      {error && (
        <p class="note bad" role="alert">
          It was not activated: {messageOf(error)}
        </p>
      )}
      <div class="buttons">
        <button type="button" onClick={() => dialog.current?.close()}>
          Cancel
        </button>
        <button type="button" class="main" aria-disabled={fetching} onClick={confirm}>
          {fetching ? 'Activating…' : 'Activate'}
        </button>
      </div>
    </dialog>
  );
}

/** What an activation does, from how things are now. */
function Consequences({ of: { id } }: { of: Activatable }) {
  const { data } = useLive(nowActive, {});
  const { activeDttTemplate: active, scheduleType } = data?.viewer ?? {};
  return (
    <ul>
      {active == null && <li>No other program is active now.</li>}
      {active?.id === id && <li>It is the active program already, and stays it.</li>}
      {active != null && active.id !== id && (
        <li>
          It takes the place of <b>{active.name}</b>.
        </li>
      )}
      {scheduleType == null && (
        <li>
          Your schedule becomes single, if it is not: always the active program. It cannot be set back here.
        </li>
      )}
      {(scheduleType === 'AUTO' || scheduleType === 'WEEKLY') && (
        <li>
          Your schedule is {scheduleType.toLowerCase()} now and becomes <b>single</b>: always the active
          program. It cannot be set back here.
        </li>
      )}
    </ul>
  );
}
