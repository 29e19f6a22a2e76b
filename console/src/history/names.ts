/** Names of trainers, programs and results, also of records that have no name or that the viewer cannot see any more. */

export const trainerName = (
  trainer: { readonly serialNumber?: string | null } | null | undefined,
  trainerId: number,
): string => `Trainer ${trainer?.serialNumber || `#${trainerId}`}`;

export function programName(
  template: { readonly name: string } | null | undefined,
  templateId: number | null | undefined,
): string {
  if (template) return template.name;
  return templateId == null ? 'No program' : `Program #${templateId}, no longer yours`;
}

export function resultName(passed: boolean | null | undefined): string {
  if (passed == null) return 'No result';
  return passed ? 'Passed' : 'Not passed';
}
