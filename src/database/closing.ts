/** Closes what was opened, also after something has failed. */

interface Closable {
  readonly close?: (() => Promise<unknown>) | undefined;
}

/**
 * Closes all, one after the other, whichever of them fail.
 * @param errors has what failed before, and gets what fails here.
 * @throws the first of the errors, once everything is closed.
 */
export async function closeAll(parts: Iterable<Closable>, errors: unknown[] = []): Promise<void> {
  for (const part of parts)
    try {
      await part.close?.();
    } catch (error) {
      errors.push(error);
    }
  if (errors.length > 0) throw errors[0];
}
