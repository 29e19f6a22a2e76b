/**
 * Limits the number of entries of an LRU cache. With its own `max`, lru-cache reserves memory for all of them at once: half
 * a megabyte for 10,000.
 */
export const atMost = (entries: number) => ({ maxSize: entries, sizeCalculation: () => 1 });
