/** A filter of a list: one of the values that occur in it, or all of them. */

interface FilterSelectProps<Value extends string | number> {
  label: string;
  /** Undefined for all values. */
  chosen: Value | undefined;
  options: readonly (readonly [value: Value, name: string])[];
  /** Names a chosen value that is not among the options: it comes from the address, which may have any. */
  nameUnlisted(chosen: Value): string;
  /** @param value undefined for all values. */
  onChoose(value: string | undefined): void;
}

export function FilterSelect<Value extends string | number>({
  label,
  chosen,
  options,
  nameUnlisted,
  onChoose,
}: FilterSelectProps<Value>) {
  const isListed = chosen === undefined || options.some(([value]) => value === chosen);
  return (
    <label>
      {label}{' '}
      <select
        value={chosen ?? ''}
        onChange={({ currentTarget: { value } }) => onChoose(value === '' ? undefined : value)}
      >
        <option value="">All</option>
        {!isListed && <option value={chosen}>{nameUnlisted(chosen)}</option>}
        {options.map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
