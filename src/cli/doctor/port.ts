/** The check of a port, for those of the core and of extensions. */

import type { Found } from '../../extensionPoints.ts';
import { checkPort, lookAtPort } from '../../http/port.ts';

/** Whether a gateway can listen on the port of a setting, or already does. */
export async function findPort(host: string, setting: string, port: number): Promise<Found> {
  if (port === 0) return 'any that is free';
  if ((await lookAtPort(host, port)).is === 'gateway') return `a running gateway has ${port}`;
  await checkPort(host, setting, port);
  return `${port} is free`;
}
