/** Accounts and the app as the API shows them. */
import type { JsonObject } from '../json.ts';
import type { Account, HubState, Installation } from '../state.ts';

/** GitHub's opaque identifier of an object. */
export function nodeId(prefix: string, id: number | string): string {
  return `${prefix}_${Buffer.from(String(id)).toString('base64url')}`;
}

/** A user, bot or organisation. */
export function accountJson(state: HubState, account: Account): JsonObject {
  const api = `${state.apiUrl}/users/${encodeURIComponent(account.login)}`;
  const slug = account.login.replace(/\[bot\]$/, '');
  return {
    login: account.login,
    id: account.id,
    node_id: nodeId(account.type === 'Organization' ? 'O' : 'U', account.id),
    avatar_url: `${state.url}/avatars/u/${account.id}`,
    gravatar_id: '',
    url: api,
    html_url: account.type === 'Bot' ? `${state.url}/apps/${slug}` : `${state.url}/${account.login}`,
    followers_url: `${api}/followers`,
    following_url: `${api}/following{/other_user}`,
    gists_url: `${api}/gists{/gist_id}`,
    starred_url: `${api}/starred{/owner}{/repo}`,
    subscriptions_url: `${api}/subscriptions`,
    organizations_url: `${api}/orgs`,
    repos_url: `${api}/repos`,
    events_url: `${api}/events{/privacy}`,
    received_events_url: `${api}/received_events`,
    type: account.type,
    site_admin: false,
    user_view_type: 'public',
  };
}

/** A user with the public profile. */
export function profileJson(state: HubState, account: Account): JsonObject {
  return {
    ...accountJson(state, account),
    name: null,
    company: null,
    blog: '',
    location: null,
    email: null,
    hireable: null,
    bio: null,
    twitter_username: null,
    public_repos: state.repositories.filter((repository) => repository.owner === account && !repository.private).length,
    public_gists: 0,
    followers: 0,
    following: 0,
    created_at: account.createdAt,
    updated_at: account.createdAt,
  };
}

/** An organisation, as webhooks carry it beside the repository. */
export function organizationJson(state: HubState, account: Account): JsonObject {
  const api = `${state.apiUrl}/orgs/${account.login}`;
  return {
    login: account.login,
    id: account.id,
    node_id: nodeId('O', account.id),
    url: api,
    repos_url: `${api}/repos`,
    events_url: `${api}/events`,
    hooks_url: `${api}/hooks`,
    issues_url: `${api}/issues`,
    members_url: `${api}/members{/member}`,
    public_members_url: `${api}/public_members{/member}`,
    avatar_url: `${state.url}/avatars/u/${account.id}`,
    description: null,
  };
}

/** The app. */
export function appJson(state: HubState): JsonObject {
  const { app } = state;
  return {
    id: app.id,
    slug: app.slug,
    node_id: nodeId('A', app.id),
    client_id: app.clientId,
    owner: accountJson(state, app.owner),
    name: app.name,
    description: null,
    external_url: `${state.url}/apps/${app.slug}`,
    html_url: `${state.url}/apps/${app.slug}`,
    created_at: app.createdAt,
    updated_at: app.createdAt,
    permissions: app.permissions,
    events: app.events,
  };
}

/** An installation of the app. */
export function installationJson(state: HubState, installation: Installation): JsonObject {
  return {
    id: installation.id,
    client_id: state.app.clientId,
    account: accountJson(state, installation.account),
    repository_selection: 'selected',
    access_tokens_url: `${state.apiUrl}/app/installations/${installation.id}/access_tokens`,
    repositories_url: `${state.apiUrl}/installation/repositories`,
    html_url: `${state.url}/settings/installations/${installation.id}`,
    app_id: state.app.id,
    app_slug: state.app.slug,
    target_id: installation.account.id,
    target_type: installation.account.type,
    permissions: installation.permissions,
    events: installation.events,
    created_at: installation.createdAt,
    updated_at: installation.createdAt,
    single_file_name: null,
    has_multiple_single_files: false,
    single_file_paths: [],
    suspended_by: null,
    suspended_at: installation.suspendedAt,
  };
}
