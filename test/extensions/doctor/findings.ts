/** The findings with settings, as the command has them. */

import { examine as examineWith } from '../../../src/extensions/doctor/checks.ts';
import { extensions } from '../../../src/extensions/extensions.ts';

export const examine = (env: Readonly<Record<string, string>>) => examineWith(env, extensions);

export const problemsWith = async (env: Readonly<Record<string, string>>) =>
  (await examine({ PORT: '0', ...env })).flatMap(({ state, ...found }) =>
    state === 'problem' ? [found] : [],
  );
