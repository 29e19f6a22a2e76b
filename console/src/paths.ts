/**
 * Where the gateway and the console are. A proxy may serve both below a path of its own, so this comes from the address of the bundle,
 * which is two folders below the gateway.
 */

// In a variable, since Vite would look for a file.
const own = import.meta.url;

/** The path of the home page: `/`, or such as `/dovetail/`. */
export const home = new URL('../../', own).pathname;

export const base = `${home}console`;
