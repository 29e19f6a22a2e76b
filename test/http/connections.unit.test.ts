/** How many clients a process takes, by how many descriptors it may have. */

import { expect, it } from 'vitest';
import { mostConnections } from '../../src/http/connections.ts';

it.each([
  [1_024, 10, 814],
  [1_024, 192, 632],
  [300, 10, 90],
  [220, 10, 13],
  [128, 10, 8],
  [128, 192, 8],
  [Number.POSITIVE_INFINITY, 10, Number.POSITIVE_INFINITY],
])(
  'of %d descriptors, %d of them for its own connections, leaves as many for clients as are not needed otherwise',
  (descriptors, own, clients) => {
    expect(mostConnections(own, descriptors)).toBe(clients);
  },
);
