/** The checks of a pull request: outcome, summary, text, annotations, buttons. */
import type { Annotation, CheckRun, HubState, PullRequest } from '../state.ts';
import { type Html, html } from './html.ts';
import { icon } from './icons.ts';
import { type MarkdownPlace, renderMarkdown } from './markdown.ts';
import { headChecks, outcome, outcomeIcon, repositoryPath, when } from './parts.ts';

const LEVELS = { failure: 'cross', warning: 'alert', notice: 'info' } as const;

/** An annotation, as it stands in the list and below its line. */
export function annotationBox(pull: PullRequest, run: CheckRun, annotation: Annotation): Html {
  const lines =
    annotation.startLine === annotation.endLine ? `#L${annotation.startLine}` : `#L${annotation.startLine}-L${annotation.endLine}`;
  const href = `${repositoryPath(pull.repository)}/blob/${run.headSha}/${annotation.path}${lines}`;
  return html`<div class="annotation ${annotation.level}">${icon(LEVELS[annotation.level])}<div>
<div class="where muted">Check ${annotation.level} on <a class="mono" href="${href}">${annotation.path}${lines}</a> · ${run.name}</div>
${annotation.title === null ? '' : html`<div class="strong">${annotation.title}</div>`}<p>${annotation.message}</p>
${annotation.rawDetails === null ? '' : html`<details><summary>Raw output</summary><pre>${annotation.rawDetails}</pre></details>`}</div></div>`;
}

function duration(run: CheckRun): string {
  if (run.completedAt === null) return '';
  const seconds = Math.max(0, Math.round((Date.parse(run.completedAt) - Date.parse(run.startedAt)) / 1000));
  return seconds < 60 ? ` in ${seconds}s` : ` in ${Math.floor(seconds / 60)}m ${seconds % 60}s`;
}

function runBox(state: HubState, pull: PullRequest, run: CheckRun, place: MarkdownPlace): Html {
  const look = outcome(run.status, run.conclusion);
  const buttons = run.status === 'completed' ? run.actions : [];
  return html`<article class="check-run" id="check-${run.id}">
<div class="check-head">${outcomeIcon(run.status, run.conclusion)}<h2>${run.name}</h2><span class="muted">${run.status === 'completed' ? html`${look.words} ${when(state, run.completedAt ?? run.startedAt)}${duration(run)}` : html`${look.words}, started ${when(state, run.startedAt)}`}</span>
<span class="actions">${buttons.map((button) => html`<button class="btn" type="button" disabled title="${button.description}">${button.label}</button>`)}<button class="btn" type="button" disabled>Re-run</button></span></div>
${run.title === null ? '' : html`<h3 class="output-title">${run.title}</h3>`}
${run.summary === null ? html`<p class="empty">No output yet.</p>` : html`<div class="markdown-body">${renderMarkdown(run.summary, place)}</div>`}
${run.text === null || run.text.trim() === '' ? '' : html`<div class="caption">Details</div><div class="markdown-body">${renderMarkdown(run.text, place)}</div>`}
${run.annotations.length === 0 ? '' : html`<div class="caption">Annotations <span class="count">${run.annotations.length}</span></div>${run.annotations.map((annotation) => annotationBox(pull, run, annotation))}`}
</article>`;
}

/** The checks tab. */
export function checksView(state: HubState, pull: PullRequest, place: MarkdownPlace): Html {
  const runs = headChecks(pull);
  if (runs.length === 0) return html`<div class="box comment-body muted">No check has run for ${pull.head.sha.slice(0, 7)}.</div>`;
  return html`<div class="box checks"><nav aria-label="Checks"><h2>${state.app.name}</h2>${runs.map(
    (run) => html`<a href="#check-${run.id}">${outcomeIcon(run.status, run.conclusion)}<span>${run.name}</span></a>`,
  )}</nav><div>${runs.map((run) => runBox(state, pull, run, place))}</div></div>`;
}
