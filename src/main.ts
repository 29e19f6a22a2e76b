/** Starts the gateway, says how to reach it, and stops it when told to. */

import { readConfig } from './config.ts';
import { type Gateway, openGateway } from './gateway.ts';

/** Serves until SIGINT or SIGTERM. */
export async function serve(): Promise<void> {
  const gateway = await openGateway(readConfig(process.env));
  const told = new Promise<void>((settle) => {
    process.once('SIGINT', () => settle());
    process.once('SIGTERM', () => settle());
  });
  process.stdout.write(welcome(gateway));
  await told;
  await gateway.close();
}

function welcome({ url, demoToken }: Gateway): string {
  const token = demoToken ?? 'YOUR_API_TOKEN';
  return `
Dovetail is running.

  GraphiQL  ${url}/graphql
  REST      ${url}/api/v1
${demoToken === undefined ? '' : `  Token     ${demoToken}  (of the demo account)\n`}
  curl ${url}/graphql -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '{"query":"{ viewer { username } }"}'
  curl ${url}/api/v1/dtt/templates/active -H 'Authorization: Bearer ${token}'

`;
}
