/** Names that are probably misspelt. */

/** Whether a name may be a misspelling of the other. Short names have to be closer, since many are similar by chance. */
export function isSimilar(given: string, name: string): boolean {
  const plain = (text: string) => text.toUpperCase().replaceAll(/[_-]/g, '');
  const [one, other] = [plain(given), plain(name)];
  // Without the common start and end, at most one or two neighbouring characters may differ.
  let start = 0;
  while (start < one.length && one[start] === other[start]) start++;
  let end = 0;
  while (end < Math.min(one.length, other.length) - start && one.at(-1 - end) === other.at(-1 - end)) end++;
  const [left, right] = [one.slice(start, one.length - end), other.slice(start, other.length - end)];
  const isSwapped = left.length === 2 && `${left[1]}${left[0]}` === right;
  const differing = isSwapped ? 1 : Math.max(left.length, right.length);
  // HOST, PORT and the like are similar to unrelated names such as POST.
  if (other.length < 7) return differing === 0 || isSwapped;
  return differing <= (other.length < 10 ? 1 : 2);
}
