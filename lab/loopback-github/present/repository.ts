/** Repositories as the API shows them. */
import type { JsonObject } from '../json.ts';
import type { HubState, Repository } from '../state.ts';
import { accountJson, nodeId } from './account.ts';

/** Address of a repository in the API. */
export function repositoryApi(state: HubState, repository: Repository): string {
  return `${state.apiUrl}/repos/${repository.owner.login}/${repository.name}`;
}

/** Address of a repository's pages. */
export function repositoryHtml(state: HubState, repository: Repository): string {
  return `${state.url}/${repository.owner.login}/${repository.name}`;
}

/** `owner/name`. */
function fullName(repository: Repository): string {
  return `${repository.owner.login}/${repository.name}`;
}

/** Sub-resources with the URI template that follows their address. */
const RESOURCES: readonly (readonly [key: string, path: string])[] = [
  ['archive_url', '/{archive_format}{/ref}'],
  ['assignees_url', '/assignees{/user}'],
  ['blobs_url', '/git/blobs{/sha}'],
  ['branches_url', '/branches{/branch}'],
  ['collaborators_url', '/collaborators{/collaborator}'],
  ['comments_url', '/comments{/number}'],
  ['commits_url', '/commits{/sha}'],
  ['compare_url', '/compare/{base}...{head}'],
  ['contents_url', '/contents/{+path}'],
  ['contributors_url', '/contributors'],
  ['deployments_url', '/deployments'],
  ['downloads_url', '/downloads'],
  ['events_url', '/events'],
  ['forks_url', '/forks'],
  ['git_commits_url', '/git/commits{/sha}'],
  ['git_refs_url', '/git/refs{/sha}'],
  ['git_tags_url', '/git/tags{/sha}'],
  ['hooks_url', '/hooks'],
  ['issue_comment_url', '/issues/comments{/number}'],
  ['issue_events_url', '/issues/events{/number}'],
  ['issues_url', '/issues{/number}'],
  ['keys_url', '/keys{/key_id}'],
  ['labels_url', '/labels{/name}'],
  ['languages_url', '/languages'],
  ['merges_url', '/merges'],
  ['milestones_url', '/milestones{/number}'],
  ['notifications_url', '/notifications{?since,all,participating}'],
  ['pulls_url', '/pulls{/number}'],
  ['releases_url', '/releases{/id}'],
  ['stargazers_url', '/stargazers'],
  ['statuses_url', '/statuses/{sha}'],
  ['subscribers_url', '/subscribers'],
  ['subscription_url', '/subscription'],
  ['tags_url', '/tags'],
  ['teams_url', '/teams'],
  ['trees_url', '/git/trees{/sha}'],
];

/** The fields every mention of a repository has. */
export function minimalRepositoryJson(state: HubState, repository: Repository): JsonObject {
  const api = repositoryApi(state, repository);
  const json: JsonObject = {
    id: repository.id,
    node_id: nodeId('R', repository.id),
    name: repository.name,
    full_name: fullName(repository),
    private: repository.private,
    owner: accountJson(state, repository.owner),
    html_url: repositoryHtml(state, repository),
    description: repository.description,
    fork: repository.parent !== null,
    url: api,
  };
  for (const [key, path] of RESOURCES) json[key] = `${api}${path}`;
  return json;
}

/** A repository as pull requests and webhooks carry it. */
export function repositoryJson(state: HubState, repository: Repository): JsonObject {
  const html = repositoryHtml(state, repository);
  const host = new URL(state.url).host;
  const name = fullName(repository);
  const open = repository.pulls.filter((pull) => pull.state === 'open').length;
  const forks = state.repositories.filter((candidate) => candidate.parent === repository).length;
  return {
    ...minimalRepositoryJson(state, repository),
    created_at: repository.createdAt,
    updated_at: repository.pushedAt,
    pushed_at: repository.pushedAt,
    git_url: `git://${host}/${name}.git`,
    ssh_url: `git@${host}:${name}.git`,
    clone_url: `${html}.git`,
    svn_url: html,
    homepage: null,
    size: 128,
    stargazers_count: 0,
    watchers_count: 0,
    language: 'Python',
    has_issues: true,
    has_projects: true,
    has_downloads: true,
    has_wiki: true,
    has_pages: false,
    has_discussions: false,
    forks_count: forks,
    mirror_url: null,
    archived: repository.archived,
    disabled: false,
    open_issues_count: open,
    license: null,
    allow_forking: true,
    is_template: false,
    web_commit_signoff_required: false,
    topics: [],
    visibility: repository.private ? 'private' : 'public',
    forks,
    open_issues: open,
    watchers: 0,
    default_branch: repository.defaultBranch,
  };
}

/** A repository asked for by itself. */
export function fullRepositoryJson(state: HubState, repository: Repository): JsonObject {
  const parent =
    repository.parent === null
      ? {}
      : { parent: repositoryJson(state, repository.parent), source: repositoryJson(state, repository.parent) };
  const { has_downloads, ...rest } = repositoryJson(state, repository);
  return { ...rest, has_downloads, ...parent, network_count: 0, subscribers_count: 0 };
}
