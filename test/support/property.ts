/** A property of a global object for the length of a test, such as whether standard error is a terminal. */

/** @returns what puts it back as it was. */
export function setProperty(object: object, name: string, value: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(object, name);
  Object.defineProperty(object, name, { value, configurable: true, writable: true });
  return () => {
    if (before) Object.defineProperty(object, name, before);
    else Reflect.deleteProperty(object, name);
  };
}
