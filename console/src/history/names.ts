/** What things are called that may have no name, or be no longer the viewer's. */

export const trainerName = (
  trainer: { readonly serialNumber?: string | null } | null | undefined,
  trainerId: number,
): string => `Trainer ${trainer?.serialNumber ?? `#${trainerId}`}`;

export function programName(
  template: { readonly name: string } | null | undefined,
  templateId: number | null | undefined,
): string {
  if (template) return template.name;
  return templateId == null ? 'No program' : `Program #${templateId}, no longer yours`;
}

export function resultName(passed: boolean | null | undefined): string {
  if (passed == null) return 'Not known';
  return passed ? 'Passed' : 'Not passed';
}
