/**
 * The weight of filters and orders in the complexity of an operation, whose unit is one field of the response. A list in its
 * default order is read from an index. A filtered or ordered list may have to scan and sort all rows of the viewer.
 */

/** A scan of a few thousand rows takes as long as this many fields of a response. */
const scan = 100;
const condition = 10;
/** A pattern is compared with each text, character by character in lower case. That takes as long as another scan. */
const pattern = 100;
const orderKey = 10;

/** @param where the value of `where` in the document, with variables replaced by their values; so is `orderBy`. */
export function weightOfList(where: unknown, orderBy: unknown): number {
  const isFiltered = isPlain(where) && Object.keys(where).length > 0;
  const extra = (isFiltered ? weightOfConditions(where) : 0) + orderKey * [orderBy ?? []].flat().length;
  return extra > 0 ? scan + extra : 0;
}

/** Each comparison, each item of a list to compare with and each empty condition has a weight. */
function weightOfConditions(value: unknown): number {
  if (Array.isArray(value)) return isPlain(value[0]) ? sum(value) : condition + value.length;
  if (!isPlain(value)) return value === undefined || value === null ? 0 : condition;
  const { contains, startsWith, ...others } = value;
  const patterns = [contains, startsWith].filter((each) => each != null).length;
  // A link without conditions is a condition as well: that there is a linked record.
  return Math.max(condition, pattern * patterns + sum(Object.values(others)));
}

const sum = (values: readonly unknown[]): number =>
  values.reduce<number>((total, each) => total + weightOfConditions(each), 0);

const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
