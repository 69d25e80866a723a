/** Repositories, branches, commits, contents, the git database. */
import { ApiError } from '../api-error.ts';
import { signedBlobUrl } from '../blob-url.ts';
import { type Call, found, type Handlers, optionalText, page, type Reply, repositoryOf, text } from '../call.ts';
import { diffCommits } from '../diff.ts';
import { ancestry, type Commit, commitsBetween, mergeBase } from '../git.ts';
import type { JsonObject } from '../json.ts';
import { nodeId } from '../present/account.ts';
import { commitJson, contentJson, fileJson, fullCommitJson, gitCommitJson } from '../present/commit.ts';
import { pullJson } from '../present/pull.ts';
import { assetJson, releaseJson } from '../present/release.ts';
import { fullRepositoryJson, repositoryApi, repositoryHtml } from '../present/repository.ts';
import { findRepository, type PullRequest, type Repository, resolveCommit } from '../state.ts';

function commitAt(repository: Repository, ref: string): Commit {
  const sha = resolveCommit(repository, ref);
  const commit = sha === null ? undefined : repository.objects.commits.get(sha);
  if (!commit) throw new ApiError(422, `No commit found for SHA: ${ref}`);
  return commit;
}

/** Contents above 1 MB come without their text; above 100 MB not at all (docs: "Get repository content"). */
const INLINE_LIMIT = 1_000_000;
const SIZE_LIMIT = 100_000_000;

function content(call: Call): Reply {
  const repository = repositoryOf(call);
  const path = text(call, 'path').replace(/^\/+|\/+$/g, '');
  const ref = optionalText(call, 'ref') ?? repository.defaultBranch;
  const sha = resolveCommit(repository, ref);
  const commit = sha === null ? undefined : repository.objects.commits.get(sha);
  if (!commit) throw new ApiError(404, `No commit found for the ref ${ref}`);
  const accept = call.headers.accept ?? '';
  const raw = /application\/vnd\.github(\.v3)?\.raw/.test(accept);
  const blob = commit.files.get(path);
  if (blob === undefined) return directory(call, repository, commit, path, ref, accept);
  const bytes = repository.objects.blobs.get(blob) ?? Buffer.alloc(0);
  if (bytes.length > SIZE_LIMIT) throw new ApiError(403, 'This API returns blobs up to 100 MB in size.');
  if (raw) return { status: 200, raw: bytes, contentType: 'application/vnd.github.v3.raw; charset=utf-8' };
  const inline = bytes.length <= INLINE_LIMIT;
  const encoded = bytes.toString('base64').replace(/.{60}/g, '$&\n');
  return {
    status: 200,
    body: {
      ...contentJson(call.state, repository, { type: 'file', path, sha: blob, size: bytes.length, ref }),
      content: inline ? `${encoded}${encoded.endsWith('\n') || encoded === '' ? '' : '\n'}` : '',
      encoding: inline ? 'base64' : 'none',
    },
  };
}

function directory(call: Call, repository: Repository, commit: Commit, path: string, ref: string, accept: string): Reply {
  const tree = treeAt(repository, commit.tree, path);
  if (tree === null) throw new ApiError(404, 'Not Found');
  const entries = (repository.objects.trees.get(tree) ?? []).map((entry) =>
    contentJson(call.state, repository, {
      type: entry.type === 'blob' ? 'file' : 'dir',
      path: path === '' ? entry.path : `${path}/${entry.path}`,
      sha: entry.sha,
      size: repository.objects.blobs.get(entry.sha)?.length ?? 0,
      ref,
    }),
  );
  if (!accept.includes('application/vnd.github.object')) return { status: 200, body: entries };
  return { status: 200, body: { ...contentJson(call.state, repository, { type: 'dir', path, sha: tree, size: 0, ref }), entries } };
}

function treeAt(repository: Repository, root: string, path: string): string | null {
  let tree = root;
  for (const part of path === '' ? [] : path.split('/')) {
    const entry = repository.objects.trees.get(tree)?.find((candidate) => candidate.path === part && candidate.type === 'tree');
    if (!entry) return null;
    tree = entry.sha;
  }
  return tree;
}

function treeEntries(call: Call, repository: Repository, tree: string, recursive: boolean, prefix = ''): JsonObject[] {
  return (repository.objects.trees.get(tree) ?? []).flatMap((entry) => {
    const path = `${prefix}${entry.path}`;
    const url = `${repositoryApi(call.state, repository)}/git/${entry.type}s/${entry.sha}`;
    const size = entry.type === 'blob' ? { size: repository.objects.blobs.get(entry.sha)?.length ?? 0 } : {};
    const json = { path, mode: entry.mode, type: entry.type, sha: entry.sha, ...size, url };
    return entry.type === 'tree' && recursive ? [json, ...treeEntries(call, repository, entry.sha, true, `${path}/`)] : [json];
  });
}

/**
 * Pull requests of a commit. `fork-only commits`: empty when the commit is on no branch of this repository, even if a pull request from
 * a fork has it as head (TooTallNate/nx.js#410, kolibri#14719, nerva#79). Asked on the fork, the pull request is found.
 */
function pullsOfCommit(call: Call, repository: Repository, sha: string): PullRequest[] {
  const reachable = [...repository.branches.values()].some((tip) => ancestry(repository.objects, tip).includes(sha));
  if (!reachable) return [];
  return call.state.repositories
    .flatMap((candidate) => candidate.pulls)
    .filter((pull) => pull.head.repository === repository || pull.repository === repository)
    .filter((pull) => commitsBetween(repository.objects, pull.base.sha, pull.head.sha).some((commit) => commit.sha === sha));
}

function compare(call: Call): Reply {
  const repository = repositoryOf(call);
  const [left = '', right = ''] = text(call, 'basehead').split('...');
  const at = (ref: string): Commit => {
    const [, owner, branch] = /^([^:]+):(.+)$/.exec(ref) ?? [];
    const where =
      owner === undefined ? repository : call.state.repositories.find((r) => r.objects === repository.objects && r.owner.login === owner);
    const sha = where ? resolveCommit(where, branch ?? ref) : null;
    return found(repository.objects.commits.get(sha ?? ''));
  };
  const base = at(left);
  const head = at(right);
  const common = found(repository.objects.commits.get(mergeBase(repository.objects, base.sha, head.sha) ?? ''));
  const ahead = commitsBetween(repository.objects, base.sha, head.sha);
  const behind = commitsBetween(repository.objects, head.sha, base.sha);
  const status = ahead.length === 0 ? (behind.length === 0 ? 'identical' : 'behind') : behind.length === 0 ? 'ahead' : 'diverged';
  const html = `${repositoryHtml(call.state, repository)}/compare/${left}...${right}`;
  return {
    status: 200,
    body: {
      url: `${repositoryApi(call.state, repository)}/compare/${left}...${right}`,
      html_url: html,
      permalink_url: `${repositoryHtml(call.state, repository)}/compare/${base.sha}...${head.sha}`,
      diff_url: `${html}.diff`,
      patch_url: `${html}.patch`,
      base_commit: commitJson(call.state, repository, base),
      merge_base_commit: commitJson(call.state, repository, common),
      status,
      ahead_by: ahead.length,
      behind_by: behind.length,
      total_commits: ahead.length,
      commits: ahead.map((commit) => commitJson(call.state, repository, commit)),
      files: diffCommits(repository.objects, common.sha, head.sha).map((file) => fileJson(call.state, repository, file, head.sha)),
    },
  };
}

/** Handlers of this area. */
export const repositoryHandlers: Handlers = {
  'repos/get': (call) => {
    const repository = found(findRepository(call.state, text(call, 'owner'), text(call, 'repo')));
    return { status: 200, body: fullRepositoryJson(call.state, repository) };
  },

  'repos/list-branches': (call) => {
    const repository = repositoryOf(call);
    const { items, headers } = page(call, [...repository.branches]);
    const api = repositoryApi(call.state, repository);
    const body = items.map(([name, sha]) => ({ name, commit: { sha, url: `${api}/commits/${sha}` }, protected: false }));
    return { status: 200, body, headers };
  },

  'repos/get-branch': (call) => {
    const repository = repositoryOf(call);
    const name = text(call, 'branch');
    const sha = repository.branches.get(name);
    if (sha === undefined) throw new ApiError(404, 'Branch not found');
    const self = `${repositoryApi(call.state, repository)}/branches/${name}`;
    return {
      status: 200,
      body: {
        name,
        commit: commitJson(call.state, repository, found(repository.objects.commits.get(sha))),
        _links: { self, html: `${repositoryHtml(call.state, repository)}/tree/${name}` },
        protected: false,
        protection: { enabled: false, required_status_checks: { enforcement_level: 'off', contexts: [], checks: [] } },
        protection_url: `${self}/protection`,
      },
    };
  },

  'repos/list-commits': (call) => {
    const repository = repositoryOf(call);
    const start = commitAt(repository, optionalText(call, 'sha') ?? repository.defaultBranch);
    const path = optionalText(call, 'path');
    const commits = ancestry(repository.objects, start.sha)
      .flatMap((sha) => repository.objects.commits.get(sha) ?? [])
      .filter(
        (commit) => path === null || repository.objects.commits.get(commit.parents[0] ?? '')?.files.get(path) !== commit.files.get(path),
      );
    const { items, headers } = page(call, commits);
    return { status: 200, body: items.map((commit) => commitJson(call.state, repository, commit)), headers };
  },

  'repos/get-commit': (call) => {
    const repository = repositoryOf(call);
    return { status: 200, body: fullCommitJson(call.state, repository, commitAt(repository, text(call, 'ref'))) };
  },

  'repos/list-pull-requests-associated-with-commit': (call) => {
    const repository = repositoryOf(call);
    const commit = commitAt(repository, text(call, 'commit_sha'));
    const { items, headers } = page(call, pullsOfCommit(call, repository, commit.sha));
    return { status: 200, body: items.map((pull) => pullJson(call.state, pull)), headers };
  },

  'repos/compare-commits-with-basehead': compare,

  'repos/get-content': content,

  'repos/get-release-by-tag': (call) => {
    const repository = repositoryOf(call);
    const release = found(repository.releases.find(({ tag }) => tag === text(call, 'tag')));
    return { status: 200, body: releaseJson(call.state, repository, release) };
  },

  'repos/get-release-asset': (call) => {
    const repository = repositoryOf(call);
    const id = Number(call.parameters.asset_id);
    const release = found(repository.releases.find(({ assets }) => assets.some((asset) => asset.id === id)));
    const asset = release.assets.find((candidate) => candidate.id === id)!;
    // The bytes lie elsewhere; clients must follow a 302 as well as take a 200 [docs, "Get a release asset"].
    if (call.headers.accept?.includes('application/octet-stream'))
      return { status: 302, headers: { location: signedBlobUrl(call.state, asset) } };
    return { status: 200, body: assetJson(call.state, repository, release, asset) };
  },

  'git/get-tree': (call) => {
    const repository = repositoryOf(call);
    const name = text(call, 'tree_sha');
    const commit = resolveCommit(repository, name);
    const sha = commit === null ? name : (repository.objects.commits.get(commit)?.tree ?? name);
    if (!repository.objects.trees.has(sha)) found(null);
    return {
      status: 200,
      body: {
        sha,
        url: `${repositoryApi(call.state, repository)}/git/trees/${sha}`,
        tree: treeEntries(call, repository, sha, optionalText(call, 'recursive') !== null),
        truncated: false,
      },
    };
  },

  'git/get-blob': (call) => {
    const repository = repositoryOf(call);
    const sha = text(call, 'file_sha');
    const bytes = found(repository.objects.blobs.get(sha));
    if (/application\/vnd\.github(\.v3)?\.raw/.test(call.headers.accept ?? '')) {
      return { status: 200, raw: bytes, contentType: 'application/vnd.github.v3.raw; charset=utf-8' };
    }
    return {
      status: 200,
      body: {
        sha,
        node_id: nodeId('B', sha),
        size: bytes.length,
        url: `${repositoryApi(call.state, repository)}/git/blobs/${sha}`,
        content: bytes.toString('base64'),
        encoding: 'base64',
      },
    };
  },

  'git/get-ref': (call) => {
    const repository = repositoryOf(call);
    const ref = text(call, 'ref');
    const sha = /^(heads\/|pull\/\d+\/head$)/.test(ref) ? found(resolveCommit(repository, ref)) : found<string>(null);
    const api = repositoryApi(call.state, repository);
    return {
      status: 200,
      body: {
        ref: `refs/${ref}`,
        node_id: nodeId('REF', `${repository.id}:${ref}`),
        url: `${api}/git/refs/${ref}`,
        object: { sha, type: 'commit', url: `${api}/git/commits/${sha}` },
      },
    };
  },

  'git/get-commit': (call) => {
    const repository = repositoryOf(call);
    return { status: 200, body: gitCommitJson(call.state, repository, found(repository.objects.commits.get(text(call, 'commit_sha')))) };
  },
};
