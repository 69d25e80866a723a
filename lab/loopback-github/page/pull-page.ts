/** The page of a pull request, with its four tabs in one document (the tab is chosen by the fragment, no script). */
import { commitsBetween } from '../git.ts';
import type { HubState, PullRequest } from '../state.ts';
import { checksView } from './checks-view.ts';
import { conversation } from './conversation.ts';
import { diffStat } from './diff-view.ts';
import { changedLines, filesView } from './files-view.ts';
import { type Html, html } from './html.ts';
import { icon } from './icons.ts';
import { avatar, headChecks, personName, repositoryPath, when } from './parts.ts';

function stateLabel(pull: PullRequest): Html {
  if (pull.mergedAt !== null) return html`<span class="state merged">${icon('merge')} Merged</span>`;
  if (pull.state === 'closed') return html`<span class="state closed">${icon('pull')} Closed</span>`;
  return pull.draft
    ? html`<span class="state draft">${icon('pull')} Draft</span>`
    : html`<span class="state open">${icon('pull')} Open</span>`;
}

/** The body of the page. */
export function pullPage(state: HubState, pull: PullRequest): Html {
  const { repository } = pull;
  const commits = commitsBetween(repository.objects, pull.base.sha, pull.head.sha);
  const place = { url: state.url, repositoryUrl: `${state.url}${repositoryPath(repository)}` };
  const lines = changedLines(pull);
  const discussion =
    repository.comments.filter((entry) => entry.number === pull.number).length +
    repository.reviewComments.filter((entry) => entry.number === pull.number).length;
  const headName = pull.head.repository === repository ? pull.head.branch : `${pull.head.repository.owner.login}:${pull.head.branch}`;
  return html`<h1 class="pr-title">${pull.title} <span class="number">#${pull.number}</span></h1>
<div class="pr-meta">${stateLabel(pull)}<span>${personName(pull.author)} wants to merge ${commits.length} ${commits.length === 1 ? 'commit' : 'commits'} into <span class="branch mono">${pull.base.branch}</span> from <span class="branch mono">${headName}</span></span></div>
<nav class="tabs" aria-label="Pull request"><a class="t-conversation" href="#conversation">${icon('comment')} Conversation <span class="count">${discussion}</span></a><a class="t-commits" href="#commits">${icon('commit')} Commits <span class="count">${commits.length}</span></a><a class="t-checks" href="#checks">${icon('checklist')} Checks <span class="count">${headChecks(pull).length}</span></a><a class="t-files" href="#files">${icon('file')} Files changed <span class="count">${lines.files}</span></a>${diffStat(lines.additions, lines.deletions)}</nav>
<section id="conversation" aria-label="Conversation">${conversation(state, pull, place)}</section>
<section id="commits" aria-label="Commits"><ul class="list box">${commits.map(
    (commit) =>
      html`<li>${avatar(pull.author, true)}<span><a href="${repositoryPath(repository)}/commit/${commit.sha}">${commit.message.split('\n')[0]}</a><br><span class="muted">${commit.author.login} committed ${when(state, commit.date)} · <span class="mono">${commit.sha.slice(0, 7)}</span></span></span></li>`,
  )}</ul></section>
<section id="checks" aria-label="Checks">${checksView(state, pull, place)}</section>
<section id="files" aria-label="Files changed">${filesView(pull)}</section>`;
}
