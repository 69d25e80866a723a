/** Pull requests: lists, details, files, commits. */
import { type Handlers, optionalText, page, pullOf, repositoryOf, text } from '../call.ts';
import { diffCommits } from '../diff.ts';
import { commitsBetween } from '../git.ts';
import { commitJson, fileJson } from '../present/commit.ts';
import { diffBase, fullPullJson, issueJson, labelsJson, pullJson } from '../present/pull.ts';

/** At most this many files are listed (docs: "List pull requests files"). */
const MAX_FILES = 3000;
/** At most this many commits are listed (docs: "List commits on a pull request"). */
const MAX_COMMITS = 250;

/** Handlers of this area. */
export const pullHandlers: Handlers = {
  'pulls/list': (call) => {
    const repository = repositoryOf(call);
    const state = text(call, 'state');
    const base = optionalText(call, 'base');
    // Without "owner:", GitHub ignores the filter (docs: "Filter pulls by head user or head organization and branch name").
    const head = optionalText(call, 'head');
    const filter = head?.includes(':') ? head.toLowerCase() : null;
    const pulls = repository.pulls
      .filter((pull) => state === 'all' || pull.state === state)
      .filter((pull) => base === null || pull.base.branch === base)
      .filter((pull) => filter === null || `${pull.head.repository.owner.login}:${pull.head.branch}`.toLowerCase() === filter);
    const newestFirst = (optionalText(call, 'direction') ?? 'desc') === 'desc';
    const sorted = newestFirst ? pulls.toReversed() : pulls;
    const { items, headers } = page(call, sorted);
    return { status: 200, body: items.map((pull) => pullJson(call.state, pull)), headers };
  },

  'pulls/get': (call) => {
    const pull = pullOf(call);
    if (/application\/vnd\.github(\.v3)?\.(diff|patch)/.test(call.headers.accept ?? '')) {
      const files = diffCommits(pull.repository.objects, diffBase(pull), pull.head.sha);
      const text = files
        .map((file) => `diff --git a/${file.path} b/${file.path}\n--- a/${file.path}\n+++ b/${file.path}\n${file.patch ?? ''}\n`)
        .join('');
      return { status: 200, raw: Buffer.from(text), contentType: 'application/vnd.github.v3.diff; charset=utf-8' };
    }
    return { status: 200, body: fullPullJson(call.state, pull) };
  },

  'pulls/list-files': (call) => {
    const pull = pullOf(call);
    const files = diffCommits(pull.repository.objects, diffBase(pull), pull.head.sha).slice(0, MAX_FILES);
    const { items, headers } = page(call, files);
    return { status: 200, body: items.map((file) => fileJson(call.state, pull.repository, file, pull.head.sha)), headers };
  },

  'pulls/list-commits': (call) => {
    const pull = pullOf(call);
    const commits = commitsBetween(pull.repository.objects, pull.base.sha, pull.head.sha).slice(0, MAX_COMMITS);
    const { items, headers } = page(call, commits);
    return { status: 200, body: items.map((commit) => commitJson(call.state, pull.repository, commit)), headers };
  },

  'issues/get': (call) => ({ status: 200, body: issueJson(call.state, pullOf(call, 'issue_number')) }),

  'issues/list-labels-on-issue': (call) => {
    const { items, headers } = page(call, labelsJson(call.state, pullOf(call, 'issue_number')));
    return { status: 200, body: items, headers };
  },
};
