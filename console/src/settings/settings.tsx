/** The settings of the account: its API tokens. */

import { useRef, useState } from 'preact/hooks';
import type { SettingsQuery, TokenFieldsFragment } from '../../generated/graphql.ts';
import { useLive } from '../api/useLive.ts';
import { Loaded } from '../parts/loaded.tsx';
import { View } from '../parts/view.tsx';
import { NewToken } from './newToken.tsx';
import { createApiToken, revokeApiToken, settings } from './queries.ts';
import { TokenList } from './tokenList.tsx';
import './settings.css';

/** How many active tokens an account may have. */
const maxTokens = 5;

const sources = [
  { document: settings, variables: {} },
  { document: createApiToken, variables: { name: 'Dashboard', scopes: ['READ'] } },
  { document: revokeApiToken, variables: { id: '1' } },
];

export function Settings({ onSignOut }: { onSignOut(): void }) {
  const result = useLive(settings, {});
  return (
    <View title="Settings" sources={sources}>
      <Loaded result={result}>
        {({ viewer }) => viewer?.apiTokens && <Tokens viewer={viewer} onSignOut={onSignOut} />}
      </Loaded>
    </View>
  );
}

interface TokensProps {
  viewer: NonNullable<SettingsQuery['viewer']>;
  onSignOut(): void;
}

function Tokens({ viewer: { apiTokens, currentToken, subscriptionTier }, onSignOut }: TokensProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const [revoked, setRevoked] = useState<TokenFieldsFragment>();
  const tokens = apiTokens ?? [];
  const canManage = currentToken?.scopes.includes('MANAGE') ?? false;
  return (
    <div class="settings">
      <section class="card" aria-labelledby="tokens">
        <h2 id="tokens" ref={heading} tabIndex={-1}>
          API tokens
        </h2>
        {!currentToken ? (
          <p>
            You signed in with a token of another service, where this account lives. Its tokens are made and
            revoked there, in the settings of its dashboard. This gateway stores none of them.
          </p>
        ) : canManage ? (
          <p class="hint">
            Apps use these tokens to access your account. You have {tokens.length} of {maxTokens}.
          </p>
        ) : (
          <p class="note">
            You signed in with the token “{currentToken.name}”, which cannot manage tokens, so you only see
            this one. To create or revoke tokens, sign in with a token with the scope <code>manage</code>. If
            you run this gateway, <code>dovetail token create --user NAME --name console --scope manage</code>{' '}
            makes one; otherwise ask who does.
          </p>
        )}
        <p role="status" class="said">
          {revoked && `“${revoked.name}” is revoked.`}
        </p>
        <TokenList
          tokens={tokens}
          canRevoke={canManage}
          onRevoked={(token) => {
            if (token.isCurrent) onSignOut();
            setRevoked(token);
            // The button that had the focus is gone.
            heading.current?.focus();
          }}
        />
      </section>
      {canManage && (
        <section class="card" aria-labelledby="new-token">
          <h2 id="new-token">New token</h2>
          <p class="hint">
            Creating a token needs the tier ultra. An account has {maxTokens} tokens at most.
          </p>
          {/* A mirror may not know the tier. */}
          {subscriptionTier == null || subscriptionTier === 'ultra' ? (
            <NewToken isFull={tokens.length >= maxTokens} revoked={revoked?.id} />
          ) : (
            <p class="note">
              Your tier is {subscriptionTier}, so you cannot create one. The tokens that you have stay valid.
            </p>
          )}
        </section>
      )}
    </div>
  );
}
