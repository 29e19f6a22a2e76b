/** The activation of a DTT template. */

import { argumentError, messages } from '../../errors.ts';
import { builder } from '../builder.ts';
import { nullIfUnknown, nullOnlyWithError, toOne } from '../fields.ts';
import { type Call, queryShownBy, type Row } from '../loading/rows.ts';
import { idOf, referenceTo } from '../reference.ts';
import { viewerField } from './user.ts';

/** The row that the statement returns. */
interface Written {
  readonly previousTemplateId: number | null;
  /** Null where it is not known. */
  readonly scheduleTypeChanged: boolean | null;
}

interface Activation extends Written {
  readonly templateId: number;
  /** The template after the activation; undefined where it has to be read again. */
  readonly template: Row<'DttTemplate'> | undefined;
}

const template = toOne('DttTemplate', 'templateId');

const ActivateTemplatePayload = builder.objectRef<Activation>('ActivateTemplatePayload').implement({
  description: 'What the activation of a template led to.',
  fields: (t) => ({
    template: t.field({
      description: 'The template, now active. Null only if it was deleted in the meantime.',
      ...template,
      resolve: (activation, ...others) => activation.template ?? template.resolve(activation, ...others),
    }),
    previousTemplate: t.field({
      description:
        'The template that was active before; null when none was, or the same, or it is no longer one of yours.',
      ...toOne('DttTemplate', 'previousTemplateId'),
    }),
    viewer: t.field({ ...viewerField, description: 'You, with your new active template.' }),
    scheduleTypeChanged: t.exposeBoolean(
      'scheduleTypeChanged',
      nullIfUnknown('Whether the schedule type was `auto` or `weekly` and is now `single`.'),
    ),
  }),
});

builder.mutationField('activateTemplate', (t) =>
  t.field({
    type: ActivateTemplatePayload,
    nullable: true,
    extensions: { ...nullOnlyWithError, scope: 'activate' },
    args: {
      template: t.arg({
        type: referenceTo('DttTemplate', 'a template'),
        required: true,
        description: 'The template to activate.',
      }),
    },
    description:
      'Makes a template that you own the active one, in place of any other; the active one stays active. The ' +
      'schedule type becomes `single` if it was not. Fails with NOT_FOUND for a template that is missing or not owned.',
    resolve: async (_root, args, context, info) => {
      const templateId = idOf('DttTemplate', args.template, 'template');
      const activateHere = () => activate(templateId, { context, info });
      const there = await context.elsewhere?.activate(context.viewer, templateId, activateHere);
      const here = there?.here ?? (await activateHere());
      // Discard what earlier fields of this operation have read, which the activation may have changed.
      context.loaders.clear();
      return {
        templateId,
        template: here.template,
        previousTemplateId: here.previousTemplateId === templateId ? null : here.previousTemplateId,
        // The schedule type of an account that lives elsewhere is known there alone.
        scheduleTypeChanged: there ? there.scheduleTypeChanged : here.scheduleTypeChanged,
      };
    },
  }),
);

/**
 * Makes the template the viewer's active one, in one statement (docs/rest.md#activation). The statement first locks the row of the
 * template: if the template is being deleted, it waits for the deletion and then finds no template. The lock on the viewer's
 * row serializes concurrent activations, so that each one sees the result of the one before.
 */
const statement = `
  WITH owned AS (SELECT FROM "DttTemplate" WHERE id = $2 AND "ownerId" = $1 FOR KEY SHARE),
    before AS (
      SELECT id, "scheduleType", "activeTemplateId" FROM "User"
      WHERE id = $1 AND EXISTS (SELECT FROM owned) FOR UPDATE
    )
  UPDATE "User"
  SET "activeTemplateId" = $2, "scheduleType" = 'single'
  FROM before
  WHERE "User".id = before.id
  RETURNING coalesce(before."scheduleType" <> 'single', false) AS "scheduleTypeChanged",
    before."activeTemplateId" AS "previousTemplateId"`;

/** @throws NOT_FOUND for a template that does not exist, or that the viewer does not own. */
async function activate(id: number, call: Call): Promise<Omit<Activation, 'templateId'>> {
  const { sql, viewer } = call.context;
  const activation = { text: statement, values: [viewer.id, id] };
  const query = queryShownBy('template', 'DttTemplate', call);
  const [[written], found] = await sql.write<Written>(activation, 'DttTemplate', query, {
    id,
    viewer: viewer.id,
  });
  if (!written) throw argumentError('template', messages.templateNotOwned, 'NOT_FOUND');
  // The row has the columns that the field needs.
  const [template] = found as Row<'DttTemplate'>[];
  return { ...written, template };
}
