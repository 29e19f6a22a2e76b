/** The tokens of the account, each with what it may do, when it was used, and a button that revokes it. */

import { useClient } from '@urql/preact';
import { useRef, useState } from 'preact/hooks';
import type { TokenFieldsFragment } from '../../generated/graphql.ts';
import { readDemoToken } from '../page.ts';
import { Badge } from '../parts/badge.tsx';
import { capitalised } from '../parts/capitalised.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Facts } from '../parts/facts.tsx';
import { messageOf } from '../parts/loaded.tsx';
import { Time, TimeAgo } from '../parts/time.tsx';
import { forgetToken, readToken, storeToken } from '../session.ts';
import { revokeApiToken } from './queries.ts';

type Token = TokenFieldsFragment;

interface TokenListProps {
  tokens: readonly Token[];
  canRevoke: boolean;
  onRevoked(token: Token): void;
}

export function TokenList({ tokens, canRevoke, onRevoked }: TokenListProps) {
  const [chosen, setChosen] = useState<Token>();
  return (
    <>
      <ul class="tokens">
        {tokens.map((token) => (
          <li key={token.id}>
            <div class="head">
              <h3>{token.name}</h3>
              {token.scopes.map((scope) => (
                <Badge key={scope}>{capitalised(scope.toLowerCase())}</Badge>
              ))}
              {token.isCurrent && <Badge kind="accent">Current</Badge>}
            </div>
            <Facts
              of={[
                ['Begins with', token.prefix == null ? null : <code key="prefix">{token.prefix}</code>],
                ['Created', <Time key="created" at={token.createdAt} />],
                [
                  'Last used',
                  token.lastUsedAt == null ? 'Never' : <TimeAgo key="used" at={token.lastUsedAt} />,
                ],
                ['Expires', token.expiresAt == null ? 'Never' : <Time key="expires" at={token.expiresAt} />],
              ]}
            />
            {canRevoke && (
              <button
                type="button"
                class="bad"
                aria-label={`Revoke ${token.name}`}
                onClick={() => setChosen(token)}
              >
                Revoke
              </button>
            )}
          </li>
        ))}
      </ul>
      {chosen && (
        <RevocationDialog
          token={chosen}
          onClose={(isRevoked) => {
            setChosen(undefined);
            if (isRevoked) onRevoked(chosen);
          }}
        />
      )}
    </>
  );
}

interface RevocationDialogProps {
  token: Token;
  onClose(isRevoked: boolean): void;
}

function RevocationDialog({ token: { id, name, isCurrent }, onClose }: RevocationDialogProps) {
  const client = useClient();
  const isRevoked = useRef(false);
  const [isOfPages] = useState(() => isCurrent && readToken() === readDemoToken());

  async function revoke() {
    const ownToken = readToken();
    // The gateway may close the connection before it responds. Without a token in the tab, the form to sign in shows no problem.
    if (isCurrent) forgetToken();
    const { data, error } = await client.mutation(revokeApiToken, { token: { id } }).toPromise();
    isRevoked.current = data?.revokeApiToken != null;
    if (isRevoked.current) return undefined;
    if (ownToken !== undefined) storeToken(ownToken);
    return `It was not revoked${error ? `: ${messageOf(error)}` : '.'}`;
  }
  return (
    <Dialog
      title={`Revoke ${name}?`}
      action={['Revoke', 'Revoking…']}
      isFinal
      onConfirm={revoke}
      onClose={() => onClose(isRevoked.current)}
    >
      <p>
        Apps that use this token are cut off at once. This cannot be undone.
        {isCurrent && ' You signed in with it, so you are signed out.'}
        {isOfPages &&
          ' The pages of this gateway use this token. A restart of the gateway makes another one.'}
      </p>
    </Dialog>
  );
}
