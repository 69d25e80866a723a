/** Pages around pull requests, so that links lead somewhere: lists, files, workflow runs, commits. */
import { diffCommits } from '../diff.ts';
import type { HubState, Repository, WorkflowRun } from '../state.ts';
import { resolveCommit } from '../state.ts';
import { diffStat, fileDiff } from './diff-view.ts';
import { type Html, html } from './html.ts';
import { icon } from './icons.ts';
import { outcome, outcomeIcon, repositoryPath, when } from './parts.ts';

/** Every repository of this GitHub. */
export function homePage(state: HubState): Html {
  return html`<h1 class="plain">Repositories</h1><ul class="list box">${state.repositories.map(
    (repository) =>
      html`<li>${icon('repo')}<span><a href="${repositoryPath(repository)}/pulls">${repository.owner.login}/${repository.name}</a> <span class="label">${repository.private ? 'Private' : 'Public'}</span></span></li>`,
  )}</ul>`;
}

/** The pull requests of a repository. */
export function pullsPage(state: HubState, repository: Repository): Html {
  const pulls = repository.pulls.toReversed();
  return html`<h1 class="plain">Pull requests</h1><ul class="list box">${pulls.map(
    (pull) =>
      html`<li><span class="${pull.state === 'open' ? 'c-success' : 'c-neutral'}">${icon('pull')}</span><span><a href="${repositoryPath(repository)}/pull/${pull.number}">${pull.title}</a><br><span class="muted">#${pull.number} opened ${when(state, pull.createdAt)} by ${pull.author.login}</span></span></li>`,
  )}</ul>`;
}

/** A file at a commit, with lines to link to. */
export function blobPage(repository: Repository, rest: string): Html | null {
  const [ref = '', ...path] = rest.split('/');
  const commit = repository.objects.commits.get(resolveCommit(repository, ref) ?? '');
  const blob = commit?.files.get(path.join('/'));
  const bytes = repository.objects.blobs.get(blob ?? '');
  if (!bytes) return null;
  const lines = bytes.includes(0) ? ['Binary file'] : bytes.toString('utf8').replace(/\n$/, '').split('\n');
  return html`<div class="box file"><div class="file-head mono">${icon('file')}<span class="strong">${path.join('/')}</span><span class="muted">at ${ref.slice(0, 7)}</span></div><table class="diff">${lines.map(
    (line, index) => html`<tr id="L${index + 1}"><td class="num">${index + 1}</td><td class="code" data-mark="">${line}</td></tr>`,
  )}</table></div>`;
}

/** A commit with its changes. */
export function commitPage(state: HubState, repository: Repository, sha: string): Html | null {
  const commit = repository.objects.commits.get(resolveCommit(repository, sha) ?? '');
  if (!commit) return null;
  const files = diffCommits(repository.objects, commit.parents[0] ?? '', commit.sha);
  return html`<h1 class="plain">${commit.message}</h1><p class="muted">${commit.author.login} committed ${when(state, commit.date)} · <span class="mono">${commit.sha}</span></p>${files.map(
    (file, index) =>
      html`<div class="box file"><div class="file-head mono">${icon('file')}<span class="strong">${file.path}</span>${diffStat(file.additions, file.deletions)}</div>${fileDiff(file, `diff-${index}`, () => null)}</div>`,
  )}`;
}

/** A workflow run with its artifacts. */
export function runPage(state: HubState, repository: Repository, run: WorkflowRun): Html {
  const artifacts = repository.artifacts.filter((artifact) => artifact.run === run);
  return html`<h1 class="plain">${outcomeIcon(run.status, run.conclusion)} ${run.title} <span class="muted">${run.workflow.name} #${run.runNumber}</span></h1>
<p class="muted">${outcome(run.status, run.conclusion).words} · ${run.event} · attempt ${run.runAttempt} · ${run.headBranch} <span class="mono">${run.headSha.slice(0, 7)}</span> · ${when(state, run.updatedAt)}</p>
<ul class="list box">${artifacts.length === 0 ? html`<li class="muted">No artifacts</li>` : artifacts.map((artifact) => html`<li>${icon('package')}<span><span class="strong">${artifact.name}</span> <span class="muted">${artifact.expired ? 'expired' : bytesText(artifact.declaredSize)}</span><br><span class="muted mono">${artifact.digest}</span></span></li>`)}</ul>`;
}

function bytesText(bytes: number): string {
  const units = ['bytes', 'KB', 'MB', 'GB'];
  const power = Math.min(3, Math.floor(Math.log2(Math.max(bytes, 1)) / 10));
  return `${(bytes / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}
