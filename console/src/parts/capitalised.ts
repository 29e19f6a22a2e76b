/** A word of the service, such as `locked`, with a capital: `Locked`. */
export const capitalised = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);
