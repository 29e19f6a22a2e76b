/**
 * A sequence of random numbers from which a test derives its choices. 0, and the end of the sequence, stand for the simplest
 * choice: when fast-check shrinks a failing sequence, the case that is derived from it gets simpler too.
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
