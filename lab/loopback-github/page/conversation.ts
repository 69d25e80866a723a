/** The conversation of a pull request: description, commits, comments, reviews, merge box. */
import { commitsBetween } from '../git.ts';
import type { Account, CheckRun, HubState, IssueComment, PullRequest, Reaction, Review, ReviewComment, WorkflowRun } from '../state.ts';
import { commentParts } from '../suggestions.ts';
import { hunkExcerpt, suggestionDiff } from './diff-view.ts';
import { type Html, html } from './html.ts';
import { icon } from './icons.ts';
import { type MarkdownPlace, renderMarkdown } from './markdown.ts';
import { avatar, headChecks, headRuns, outcome, outcomeIcon, personName, repositoryPath, when } from './parts.ts';
import { reactionPicture } from './reaction-pictures.ts';

function reactionsHtml(reactions: readonly Reaction[]): Html {
  const counts = new Map<string, string[]>();
  for (const reaction of reactions) counts.set(reaction.content, [...(counts.get(reaction.content) ?? []), reaction.user.login]);
  if (counts.size === 0) return html``;
  return html`<div class="reactions">${[...counts].map(
    ([content, users]) =>
      html`<span class="reaction" title="${users.join(', ')}">${reactionPicture(content)} <span>${users.length}</span></span>`,
  )}</div>`;
}

function commentBox(parts: { id: string; user: Account; head: Html; body: Html; reactions: Html; label: string | null }): Html {
  return html`<div class="item">${avatar(parts.user)}<div class="box comment" id="${parts.id}">
<div class="comment-head">${personName(parts.user)} ${parts.head}${parts.label === null ? '' : html`<span class="right label">${parts.label}</span>`}</div>
<div class="comment-body markdown-body">${parts.body}</div>${parts.reactions}</div></div>`;
}

function roleLabel(pull: PullRequest, user: Account): string | null {
  if (user === pull.author) return 'Author';
  const role = pull.repository.roles.get(user.login.toLowerCase());
  return role && ['admin', 'maintain', 'write', 'triage'].includes(role) ? 'Collaborator' : null;
}

function description(state: HubState, pull: PullRequest, place: MarkdownPlace): Html {
  return commentBox({
    id: `pull-${pull.number}`,
    user: pull.author,
    head: html`commented ${when(state, pull.createdAt)}`,
    body: pull.body === null ? html`<p class="empty">No description provided.</p>` : renderMarkdown(pull.body, place),
    reactions: html``,
    label: 'Author',
  });
}

function comment(state: HubState, pull: PullRequest, entry: IssueComment, place: MarkdownPlace): Html {
  const anchor = `issuecomment-${entry.id}`;
  const edited = entry.updatedAt === entry.createdAt ? '' : html` · edited`;
  return commentBox({
    id: anchor,
    user: entry.user,
    head: html`commented <a class="when" href="#${anchor}">${when(state, entry.createdAt)}</a>${edited}`,
    body: renderMarkdown(entry.body, place),
    reactions: reactionsHtml(entry.reactions),
    label: roleLabel(pull, entry.user),
  });
}

const VERBS = {
  APPROVED: 'approved these changes',
  CHANGES_REQUESTED: 'requested changes',
  COMMENTED: 'reviewed',
  PENDING: 'started a review',
  DISMISSED: 'reviewed',
};

function review(state: HubState, pull: PullRequest, entry: Review, place: MarkdownPlace): Html {
  const comments = pull.repository.reviewComments.filter((candidate) => candidate.review === entry);
  const body =
    entry.body.trim() === ''
      ? ''
      : html`<div class="box comment"><div class="comment-head">${personName(entry.user)} left a comment</div><div class="comment-body markdown-body">${renderMarkdown(entry.body, place)}</div></div>`;
  return html`<div class="item" id="pullrequestreview-${entry.id}">${avatar(entry.user)}<div class="event"><span class="badge">${icon('eye')}</span>${personName(entry.user)} ${VERBS[entry.state]} ${when(state, entry.submittedAt ?? pull.updatedAt)}</div>
${body}${comments.map((candidate) => thread(state, pull, candidate, place))}</div>`;
}

function thread(state: HubState, pull: PullRequest, entry: ReviewComment, place: MarkdownPlace): Html {
  const path = repositoryPath(pull.repository);
  const first = entry.originalStartLine ?? entry.originalLine;
  const lines =
    first === entry.originalLine ? `Comment on line ${entry.originalLine}` : `Comment on lines ${first} to ${entry.originalLine}`;
  const outdated = entry.line === null ? html`<span class="label outdated">Outdated</span>` : '';
  return html`<div class="box thread" id="discussion_r${entry.id}">
<div class="thread-file mono">${icon('file')}<a href="${path}/blob/${entry.commitId}/${entry.path}#L${entry.originalLine}">${entry.path}</a>${outdated}</div>
<div class="thread-lines">${lines}${entry.side === 'LEFT' ? ' (old side)' : ''}</div>
${hunkExcerpt(entry.diffHunk, entry.originalLine - first + 1)}
<div class="thread-comment">${avatar(entry.user)}<div><div class="who">${personName(entry.user)} ${when(state, entry.createdAt)}</div>
${commentParts(entry.body).parts.map((part) => ('text' in part ? html`<div class="markdown-body">${renderMarkdown(part.text, place)}</div>` : suggestion(pull, entry, part.suggestion)))}${reactionsHtml(entry.reactions)}</div></div></div>`;
}

function suggestion(pull: PullRequest, entry: ReviewComment, text: string): Html {
  const first = entry.originalStartLine ?? entry.originalLine;
  const blob = pull.repository.objects.commits.get(entry.originalCommitId)?.files.get(entry.path);
  const old = (pull.repository.objects.blobs.get(blob ?? '')?.toString('utf8') ?? '').split('\n').slice(first - 1, entry.originalLine);
  return html`<div class="suggestion"><div class="suggestion-head">Suggested change</div>${suggestionDiff(old, first, text)}<div class="suggestion-foot"><button class="btn" type="button" disabled>Commit suggestion</button></div></div>`;
}

function commitLines(pull: PullRequest): { at: string; html: Html }[] {
  const path = repositoryPath(pull.repository);
  return commitsBetween(pull.repository.objects, pull.base.sha, pull.head.sha).map((commit) => ({
    at: commit.date,
    html: html`<div class="item"><div class="event commit-line"><span class="badge">${icon('commit')}</span><span class="muted">${commit.author.login}</span> <a class="mono" href="${path}/commit/${commit.sha}">${commit.message.split('\n')[0]}</a><a class="sha mono" href="${path}/commit/${commit.sha}">${commit.sha.slice(0, 7)}</a></div></div>`,
  }));
}

/** Outcome of everything that ran for the head. */
function summary(checks: readonly (CheckRun | WorkflowRun)[]): { tone: 'good' | 'bad' | 'wait'; title: string; detail: string } {
  const counts = new Map<string, number>();
  let tone: 'good' | 'bad' | 'wait' = 'good';
  for (const check of checks) {
    const look = outcome(check.status, check.conclusion);
    counts.set(look.words, (counts.get(look.words) ?? 0) + 1);
    if (look.tone === 'failure') tone = 'bad';
    else if (look.tone === 'pending' && tone === 'good') tone = 'wait';
  }
  const titles = { good: 'All checks have passed', bad: 'Some checks were not successful', wait: "Some checks haven't completed yet" };
  const detail = [...counts].map(([words, count]) => `${count} ${words.toLowerCase()}`).join(', ');
  return { tone, title: titles[tone], detail: `${detail} ${checks.length === 1 ? 'check' : 'checks'}` };
}

function mergeBox(pull: PullRequest): Html {
  if (pull.mergedAt !== null) {
    return html`<div class="item merge"><span class="merge-icon done">${icon('merge', 20)}</span><div class="box"><div class="merge-row"><div><h3>Pull request successfully merged and closed</h3></div></div></div></div>`;
  }
  if (pull.state === 'closed') {
    return html`<div class="item merge"><span class="merge-icon idle">${icon('pull', 20)}</span><div class="box"><div class="merge-row"><div><h3>Closed with unmerged commits</h3></div></div></div></div>`;
  }
  const checks = headChecks(pull);
  const runs = headRuns(pull);
  const all = summary([...checks, ...runs]);
  const ring = { good: '', bad: 'bad', wait: 'wait' }[all.tone];
  const symbol = { good: icon('check'), bad: icon('cross'), wait: icon('dot') }[all.tone];
  const rows = [
    ...runs.map((run) => ({
      mark: outcomeIcon(run.status, run.conclusion),
      name: `${run.workflow.name} (${run.event})`,
      title: '',
      href: `${repositoryPath(pull.repository)}/actions/runs/${run.id}`,
      owner: null,
    })),
    ...checks.map((run) => ({
      mark: outcomeIcon(run.status, run.conclusion),
      name: run.name,
      title: run.title ?? '',
      href: `#check-${run.id}`,
      owner: run,
    })),
  ];
  const checked =
    rows.length === 0
      ? ''
      : html`<div class="merge-row"><span class="ring ${ring}">${symbol}</span><div><h3>${all.title}</h3><p>${all.detail}</p></div></div>
${rows.map((row) => html`<div class="check-row">${row.mark}<span class="title"><a class="strong" href="${row.href}">${row.name}</a>${row.title === '' ? '' : html` <span class="muted">— ${row.title}</span>`}</span><a href="${row.href}">Details</a></div>`)}`;
  return html`<div class="item merge"><span class="merge-icon ${ring}">${icon('merge', 20)}</span><div class="box">${checked}
<div class="merge-row"><span class="ring">${icon('check')}</span><div><h3>This branch has no conflicts with the base branch</h3><p>Merging can be performed automatically.</p></div></div>
<div class="merge-row"><button class="btn primary" type="button" disabled>Merge pull request</button></div></div></div>`;
}

/** The conversation tab. */
export function conversation(state: HubState, pull: PullRequest, place: MarkdownPlace): Html {
  const { repository } = pull;
  const entries = [
    ...commitLines(pull),
    ...repository.comments
      .filter((entry) => entry.number === pull.number)
      .map((entry) => ({ at: entry.createdAt, html: comment(state, pull, entry, place) })),
    ...repository.reviews
      .filter((entry) => entry.number === pull.number && entry.state !== 'PENDING')
      .map((entry) => ({ at: entry.submittedAt ?? '', html: review(state, pull, entry, place) })),
  ].sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
  const reviewers = [...new Set(repository.reviews.filter((entry) => entry.number === pull.number).map((entry) => entry.user))];
  return html`<div class="columns"><div class="timeline">${description(state, pull, place)}${entries.map((entry) => entry.html)}${mergeBox(pull)}</div>
<aside class="sidebar"><section><h2>Reviewers</h2>${reviewers.length === 0 ? html`<span class="muted">No reviews</span>` : reviewers.map((user) => html`<div class="person">${avatar(user, true)}${personName(user)}<span class="muted">${icon('comment')}</span></div>`)}</section>
<section><h2>Assignees</h2><span class="muted">No one assigned</span></section>
<section><h2>Labels</h2>${pull.labels.length === 0 ? html`<span class="muted">None yet</span>` : pull.labels.map((label) => html`<span class="label">${label.name}</span> `)}</section>
<section><h2>Workflow runs</h2>${headRuns(pull).length === 0 ? html`<span class="muted">None yet</span>` : headRuns(pull).map((run) => html`<div class="person">${outcomeIcon(run.status, run.conclusion)}<a href="${repositoryPath(repository)}/actions/runs/${run.id}">${run.workflow.name} #${run.runNumber}</a></div>`)}</section></aside></div>`;
}
