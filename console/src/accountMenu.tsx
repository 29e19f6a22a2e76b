/** The button with the name of the user, and what it opens: the tier, the other pages, and signing out. */

import { graphql } from './api/graphql.ts';
import { useLive } from './api/useLive.ts';
import { hasGraphiql, hasReferences } from './page.ts';
import { home } from './paths.ts';

const account = graphql(`
  query Account {
    viewer {
      id
      username
      profileTitle
      subscriptionTier
    }
  }
`);

export function AccountMenu({ onSignOut }: { onSignOut(): void }) {
  const { username = '', profileTitle, subscriptionTier } = useLive(account, {}).data?.viewer ?? {};
  const facts = [profileTitle, subscriptionTier && `Tier ${subscriptionTier}`].filter(Boolean);
  return (
    <>
      {/* The browser opens and closes the popover, also by Escape and by a click beside it, and moves the focus. */}
      <button type="button" class="account" popovertarget="account-menu">
        <span class="avatar" aria-hidden="true">
          {[...username][0]}
        </span>
        <span class="hidden">Account </span>
        <span class="username">{username}</span>
      </button>
      <div id="account-menu" class="card account-menu" popover="auto">
        <p>
          <b>{username}</b>
          {facts.length > 0 && <span class="hint">{facts.join(' · ')}</span>}
        </p>
        {hasGraphiql && <a href={`${home}graphql`}>GraphiQL</a>}
        {hasReferences && <a href={`${home}schema`}>Schema</a>}
        {hasReferences && <a href={`${home}docs`}>REST reference</a>}
        <button type="button" onClick={onSignOut}>
          Sign out
        </button>
      </div>
    </>
  );
}
