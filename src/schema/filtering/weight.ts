/**
 * What a filter and an order count for in the complexity of an operation, whose unit is a field of the response. A list as it
 * comes is read off an index; another may have to look at all rows of the viewer, and sort them.
 */

/** To look at some thousand rows takes as long as to respond with so many fields. */
const scan = 100;
const condition = 10;
/** Of a text, letter by letter and in lower case, which takes as long as another scan. */
const pattern = 100;
const orderKey = 10;

/** @param where and `orderBy`, as they are written in a document, with the values of variables. */
export function weightOfList(where: unknown, orderBy: unknown): number {
  const isFiltered = isPlain(where) && Object.keys(where).length > 0;
  const extra = (isFiltered ? weightOfConditions(where) : 0) + orderKey * [orderBy ?? []].flat().length;
  return extra > 0 ? scan + extra : 0;
}

/** Each comparison counts, each item of a list that it compares with, and each condition that says nothing. */
function weightOfConditions(value: unknown): number {
  if (Array.isArray(value)) return isPlain(value[0]) ? sum(value) : condition + value.length;
  if (!isPlain(value)) return value === undefined || value === null ? 0 : condition;
  const { contains, startsWith, ...others } = value;
  const patterns = [contains, startsWith].filter((each) => each != null).length;
  // A link without conditions is one: that there is such a record.
  return Math.max(condition, pattern * patterns + sum(Object.values(others)));
}

const sum = (values: readonly unknown[]): number =>
  values.reduce<number>((total, each) => total + weightOfConditions(each), 0);

const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
