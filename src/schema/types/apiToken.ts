/**
 * The account's own tokens, with the mutations that create and revoke them. They are shown to tokens that may manage them; any other
 * token sees itself alone.
 */

import { highestOf, includedIn, localScope, type StoredScope } from '../../auth/scopes.ts';
import { addToken, revokeToken, seenBy } from '../../auth/tokens.ts';
import type PrismaTypes from '../../database/generated/pothos.ts';
import { argumentError, tokenMessages } from '../../errors.ts';
import { builder } from '../builder.ts';
import type { Context } from '../context.ts';
import { nullOnlyWithError } from '../fields.ts';
import { idOf, referenceTo } from '../reference.ts';
import { User, viewerField } from './user.ts';

const TokenScope = builder.enumType('TokenScope', {
  description: 'What a token may do. `ACTIVATE` includes `READ`, and `MANAGE` includes both.',
  values: {
    READ: { value: 'read', description: 'Queries, subscriptions, and GET in the REST interface.' },
    ACTIVATE: { value: 'activate', description: 'The activation of a template.' },
    MANAGE: {
      value: 'manage',
      description: 'Your API tokens: to list, create and revoke them.',
    },
  } as const,
});

const ApiToken = builder.prismaNode('ApiToken', {
  description: 'A token of the account, without its secret.',
  id: { field: 'id' },
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'Its integer id, as `dovetail token list` shows it.' }),
    name: t.exposeString('name', {
      description: 'What it is for. No two active tokens of an account have the same.',
    }),
    prefix: t.exposeString('prefix', {
      nullable: true,
      description:
        'What its secret begins with, to recognise it by; null for one that an earlier version of the gateway made.',
    }),
    scopes: t.field({
      type: [TokenScope],
      description: 'What it may do. Of the current token: what it may do in this request.',
      resolve: (token, _args, { viewer }) =>
        // A check of the database rejects any other scope.
        includedIn(isCurrent(token, viewer) ? viewer.scope : localScope(token.scope as StoredScope)),
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was created.' }),
    lastUsedAt: t.expose('lastUsedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it was last used, to the minute; null if it never was.',
    }),
    expiresAt: t.field({
      type: 'DateTime',
      select: { expiresAt: true },
      nullable: true,
      description:
        'When it expires; null if it does not. Of the token that the request came with: when its secret does, which another one may ' +
        'have replaced.',
      resolve: (token, _args, { viewer }) => (isCurrent(token, viewer) ? endOf(viewer) : token.expiresAt),
    }),
    isCurrent: t.boolean({
      description: 'Whether the request came with this token.',
      resolve: (token, _args, { viewer }) => isCurrent(token, viewer),
    }),
  }),
});

type Row = PrismaTypes['ApiToken']['Shape'];

/** When the secret of a viewer expires. */
const endOf = ({ expiresAt = Number.POSITIVE_INFINITY }: Context['viewer']) =>
  expiresAt === Number.POSITIVE_INFINITY ? null : new Date(expiresAt);

const isCurrent = ({ id }: Row, { tokenId }: Context['viewer']) => id === tokenId;

/** Fields of `User` that need nothing of its row: the only user who can be read is the viewer. */
const needs = { needs: {} };

builder.objectFields(User, (t) => ({
  apiTokens: t.prismaField({
    type: ['ApiToken'],
    nullable: true,
    extensions: { ...needs, ...nullOnlyWithError },
    description:
      'The active tokens of the account, newest first. A token without the scope `MANAGE` sees itself alone.',
    resolve: (query, _user, _args, { prisma, viewer }) =>
      prisma.apiToken.findMany({ ...query, where: seenBy(viewer), orderBy: { id: 'desc' } }),
  }),
  currentToken: t.prismaField({
    type: 'ApiToken',
    extensions: needs,
    nullable: true,
    description: 'The token that came with the request; null for one that another service has made.',
    resolve: (query, _user, _args, { prisma, viewer }) =>
      prisma.apiToken.findFirst({ ...query, where: { ...seenBy(viewer), id: viewer.tokenId ?? 0 } }),
  }),
}));

const changedViewer = { ...viewerField, description: 'You, with your tokens as they are now.' };

const CreateApiTokenPayload = builder
  .objectRef<{ readonly secret: string; readonly token: Row }>('CreateApiTokenPayload')
  .implement({
    description: 'A new token, with its secret.',
    fields: (t) => ({
      secret: t.exposeString('secret', {
        description: 'The token itself. It is shown this once, and stored nowhere.',
      }),
      token: t.expose('token', { type: ApiToken, description: 'The new token.' }),
      viewer: t.field(changedViewer),
    }),
  });

const RevokeApiTokenPayload = builder.objectRef<{ readonly token: Row }>('RevokeApiTokenPayload').implement({
  description: 'A token that is invalid from now on.',
  fields: (t) => ({
    token: t.expose('token', { type: ApiToken, description: 'The revoked token, as it was last.' }),
    viewer: t.field(changedViewer),
  }),
});

/** The options that both mutations have. */
const managing = { nullable: true, extensions: { ...nullOnlyWithError, scope: 'manage' } } as const;

builder.mutationField('createApiToken', (t) =>
  t.field({
    ...managing,
    type: CreateApiTokenPayload,
    description:
      'Creates a token of the account, which needs the tier `ultra` and may have five active ones.',
    args: {
      name: t.arg.string({ required: true, description: 'What it is for: at most 100 visible characters.' }),
      scopes: t.arg({
        type: [TokenScope],
        required: true,
        defaultValue: ['read', 'activate'],
        description: 'What it may do. The highest scope includes the others.',
      }),
      expiresAt: t.arg({
        type: 'DateTime',
        description:
          'When it expires. By default it does not. Needed if the current token expires, and then not after that one.',
      }),
    },
    resolve: async (_root, { name, scopes, expiresAt }, { viewer, changeTokens, loaders }) => {
      const highest = highestOf(scopes);
      if (!highest) throw argumentError('scopes', tokenMessages.noScope);
      const scope = highest === 'manage' && viewer.isOnLoopback ? 'manage_on_loopback' : highest;
      const created = await changeTokens(async (connection, validUntil) => {
        // A token never makes one with more than it has itself, in scope or in time.
        if ((expiresAt?.getTime() ?? Number.POSITIVE_INFINITY) > validUntil)
          throw argumentError('expiresAt', tokenMessages.outlives);
        return addToken(connection, viewer, { name, scope, expiresAt });
      });
      loaders.clear();
      return created;
    },
  }),
);

builder.mutationField('revokeApiToken', (t) =>
  t.field({
    ...managing,
    type: RevokeApiTokenPayload,
    description:
      'Revokes a token of the account, which may be the current one. Its streams end. Fails with NOT_FOUND if no active token has the id.',
    args: {
      token: t.arg({
        type: referenceTo('ApiToken', 'a token'),
        required: true,
        description: 'The token to revoke.',
      }),
    },
    resolve: async (_root, args, { viewer, changeTokens, loaders }) => {
      const id = idOf('ApiToken', args.token, 'token');
      const endsOwn = id === viewer.tokenId;
      const token = await changeTokens((connection) => revokeToken(connection, id, viewer.id), endsOwn);
      loaders.clear();
      return { token };
    },
  }),
);
