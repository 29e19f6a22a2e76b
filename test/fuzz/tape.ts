/**
 * A tape of random numbers, on which 0, and the end, stand for the simplest choice: fast-check draws tapes, and makes
 * the one that fails shorter, and with it what was read off it.
 */

export class Tape {
  readonly #numbers: Uint8Array;
  #place = 0;
  constructor(numbers: Uint8Array) {
    this.#numbers = numbers;
  }
  /** A number below the given one. */
  below(end: number): number {
    const next = this.#numbers[this.#place++] ?? 0;
    return end <= 256 ? next % end : (next * 256 + (this.#numbers[this.#place++] ?? 0)) % end;
  }
  /** True about as often as given, in percent. */
  chance(percent: number): boolean {
    return this.below(100) >= 100 - percent;
  }
  pick<Value>(values: readonly [Value, ...Value[]] | readonly Value[]): Value {
    const value = values[this.below(values.length)];
    if (value === undefined) throw new RangeError('there is nothing to pick from');
    return value;
  }
}
