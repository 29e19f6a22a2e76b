/** The button with the name of the user, and what it opens: the tier, the settings, the other pages, and signing out. */

import { useRef } from 'preact/hooks';
import { graphql } from './api/graphql.ts';
import { useLive } from './api/useLive.ts';
import { hasGraphiql, hasReferences } from './page.ts';
import { base, home } from './paths.ts';

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
  const menu = useRef<HTMLDivElement>(null);
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
      <div ref={menu} id="account-menu" class="card account-menu" popover="auto">
        <p>
          <b>{username}</b>
          {facts.length > 0 && <span class="hint">{facts.join(' · ')}</span>}
        </p>
        <a href={`${base}/settings`} onClick={() => menu.current?.hidePopover()}>
          Settings
        </a>
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
