/** Names that are probably misspelt. */

/** Whether a name may be a misspelling of the other. Short names have to be closer, since many are similar by chance. */
export function isSimilar(given: string, name: string): boolean {
  const plain = (text: string) => text.toUpperCase().replaceAll(/[_-]/g, '');
  const [one, other] = [plain(given), plain(name)];
  // HOST, PORT and the like are similar to unrelated names such as POST.
  if (other.length < 7) return one === other;
  const maxDistance = other.length < 10 ? 1 : 2;
  // Comparing the lengths first is cheap, and rules most out: every start compares all variables with all settings.
  return Math.abs(one.length - other.length) <= maxDistance && distance(one, other) <= maxDistance;
}

/** The Levenshtein distance: how many characters have to be inserted, removed or replaced to turn one text into the other. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (const [index, character] of [...one].entries()) {
    const above = row;
    row = [index + 1];
    for (const [column, opposite] of [...other].entries())
      row.push(
        Math.min(
          (above[column] ?? 0) + (character === opposite ? 0 : 1),
          (above[column + 1] ?? 0) + 1,
          (row[column] ?? 0) + 1,
        ),
      );
  }
  return row[other.length] ?? 0;
}
