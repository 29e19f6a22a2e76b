/** Makes a program the active one, after a dialog that says what changes. */

import { useMutation } from '@urql/preact';
import { useRef } from 'preact/hooks';
import { graphql } from '../api/graphql.ts';
import { useLive } from '../api/useLive.ts';
import { Dialog } from '../parts/dialog.tsx';
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
      currentToken {
        id
        scopes
      }
    }
  }
`);

/** Selects everything that changes, so that the cache, and with it every view, is right at once. */
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

/** One element before and after the activation, so that the focus stays on it. */
export function ActivateButton({ program, onClick }: ActivateButtonProps) {
  const { name, isActive, viewerCanActivate } = program;
  // A token of an upstream has no scopes.
  const scopes = useLive(nowActive, {}).data?.viewer?.currentToken?.scopes;
  if (!viewerCanActivate && !isActive) return <span class="hint">Only its owner can activate it.</span>;
  if (scopes && !scopes.includes('ACTIVATE') && !isActive)
    return <span class="hint">Your token can only read.</span>;
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

/** A program that was activated. */
export interface Activated {
  readonly id: string;
  /** Says what has changed. */
  readonly text: string;
}

/** Says that a program was activated, for as long as it is the active one: another tab may activate another. */
export function ActivatedNote({ activated }: { activated: Activated | undefined }) {
  const { data } = useLive(nowActive, {});
  const isStillActive = activated !== undefined && data?.viewer?.activeDttTemplate?.id === activated.id;
  return (
    <p role="status" class="said">
      {isStillActive && activated.text}
    </p>
  );
}

interface ActivationDialogProps {
  /** The program to activate. */
  program: Activatable;
  /** Called when the dialog closes. @param activated undefined if nothing was activated. */
  onClose(activated: Activated | undefined): void;
}

export function ActivationDialog({ program, onClose }: ActivationDialogProps) {
  const result = useRef<Activated>(undefined);
  const [, runMutation] = useMutation(activate);

  async function confirm() {
    const { data, error } = await runMutation({ template: { databaseId: program.databaseId } });
    const payload = data?.activateTemplate;
    if (!payload) return `It was not activated${error ? `: ${messageOf(error)}` : '.'}`;
    const { template, previousTemplate, scheduleTypeChanged } = payload;
    const text = [
      `${template?.name ?? program.name} is the active program now`,
      previousTemplate && `, in place of ${previousTemplate.name}`,
      scheduleTypeChanged ? '. Your schedule is single now.' : '.',
    ].join('');
    result.current = { id: program.id, text };
    return undefined;
  }
  return (
    <Dialog
      title={`Activate ${program.name}?`}
      action={['Activate', 'Activating…']}
      onConfirm={confirm}
      onClose={() => onClose(result.current)}
    >
      <Consequences of={program} />
    </Dialog>
  );
}

/** Says what an activation would change now. */
function Consequences({ of: { id } }: { of: Activatable }) {
  const { data } = useLive(nowActive, {});
  const { activeDttTemplate: active, scheduleType } = data?.viewer ?? {};
  return (
    <>
      {active == null && <p>No other program is active now.</p>}
      {active?.id === id && <p>It is the active program already, and stays it.</p>}
      {active != null && active.id !== id && (
        <p>
          It takes the place of <b>{active.name}</b>.
        </p>
      )}
      {scheduleType == null && (
        <p>
          Your schedule becomes single, if it is not: always the active program. It cannot be set back here.
        </p>
      )}
      {(scheduleType === 'AUTO' || scheduleType === 'WEEKLY') && (
        <p>
          Your schedule is {scheduleType.toLowerCase()} now and becomes <b>single</b>: always the active
          program. It cannot be set back here.
        </p>
      )}
    </>
  );
}
