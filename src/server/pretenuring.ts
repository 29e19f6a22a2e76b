/** In which part of memory V8 creates the objects of requests. */

import { setFlagsFromString } from 'node:v8';

/**
 * Has V8 create all objects among its youngest, which it collects cheaply, in this process.
 *
 * V8 would create objects among the old ones right away where most of those that the same code had created before were still in
 * use ("pretenuring"). Some code of Node and of the libraries creates objects that last while the gateway starts, and for each
 * request later. One such object among the old ones keeps its whole request from being collected cheaply: in about half of all
 * processes, depending on when V8 looked, each POST took half as much processor time again.
 */
export function createObjectsAmongYoungest(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}
