/**
 * Which media types a client accepts (RFC 9110, section 12.5.1). A parameter of a range says nothing of whether a type is
 * meant, since clients name what is sent anyway, such as `charset=utf-8`: but another charset is not to be had.
 */

export interface MediaRange {
  readonly type: string;
  /** In lower case, without spaces and quotation marks. */
  readonly parameters: readonly string[];
  /** From 0, for not at all, to 1. */
  readonly weight: number;
}

/** @param accept the header; everything is accepted without one. */
export function readAccept(accept: string | undefined): MediaRange[] {
  return (accept || '*/*').split(',').map(readRange).filter(isInUtf8);
}

/** The types among these that are accepted: by their weight, then as the client names them, then as they stand here. */
export function acceptedOf<Type extends string>(
  types: readonly Type[],
  ranges: readonly MediaRange[],
): Type[] {
  return types
    .map((type) => ({ type, index: rangeIndexOf(type, ranges) }))
    .filter(({ index }) => weightAt(ranges, index) > 0)
    .sort(
      (one, other) => weightAt(ranges, other.index) - weightAt(ranges, one.index) || one.index - other.index,
    )
    .map(({ type }) => type);
}

/** Where among the ranges the one is that says most exactly whether the type is accepted; -1 for none. */
function rangeIndexOf(type: string, ranges: readonly MediaRange[]): number {
  const [group] = type.split('/', 1);
  for (const range of [type, `${group}/*`, '*/*']) {
    const index = ranges.findIndex((each) => each.type === range);
    if (index !== -1) return index;
  }
  return -1;
}

const weightAt = (ranges: readonly MediaRange[], index: number) => ranges[index]?.weight ?? 0;

function readRange(text: string): MediaRange {
  const [type = '', ...parameters] = text.replaceAll(/[\s"]/g, '').toLowerCase().split(';');
  const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  return { type, parameters, weight: weight === undefined ? 1 : Number(weight) };
}

const isInUtf8 = ({ parameters }: MediaRange) =>
  parameters.every((parameter) => !parameter.startsWith('charset=') || /=utf-?8$/.test(parameter));
