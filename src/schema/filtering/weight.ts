/**
 * What a filter and an order count for in the complexity of an operation, whose unit is a field of the response. A list as it
 * comes is read off an index; another may have to look at all rows of the viewer, and sort them.
 */

/** Some thousand rows are looked at in the time that it takes to respond with so many fields. */
const scan = 100;
const condition = 10;
const orderKey = 10;

/** @param where and `orderBy`, as they are written in a document, with the values of variables. */
export function weightOfList(where: unknown, orderBy: unknown): number {
  const extra = weightOfConditions(where) + orderKey * [orderBy ?? []].flat().length;
  return extra > 0 ? scan + extra : 0;
}

/** Each comparison counts, and each item of a list that it compares with. */
function weightOfConditions(value: unknown): number {
  if (Array.isArray(value)) {
    const [first] = value;
    return isPlain(first)
      ? value.reduce((sum: number, each) => sum + weightOfConditions(each), 0)
      : condition + value.length;
  }
  if (!isPlain(value)) return value === undefined || value === null ? 0 : condition;
  return Object.values(value).reduce((sum: number, each) => sum + weightOfConditions(each), 0);
}

const isPlain = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
