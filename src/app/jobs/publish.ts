import { createHash } from 'node:crypto';
import { jobOfFinding } from '../../config/jobs.ts';
import type { Config } from '../../config/schema.ts';
import { PERMISSIONS } from '../../github/client.ts';
import { type ChangedFile, listChangedFiles } from '../../github/diff.ts';
import type { CheckAction } from '../../github/intake.ts';
import { applyComment, COMMENT_MARKER, hashBody, listOwnComments, planComment } from '../../github/publish/comment.ts';
import {
  listPostedSuggestions,
  type PostedSuggestion,
  planReview,
  postReview,
  type Suggestion,
  safeFingerprint,
} from '../../github/publish/review.ts';
import { type PullRequest, readPullRequest } from '../../github/pull-requests.ts';
import type { ShownFinding } from '../../model/acknowledgement.ts';
import type { Lang } from '../../model/lang.ts';
import { type Finding, Report } from '../../model/report.ts';
import { type AwaitedJob, withAwaitedNote } from '../../render/awaited.ts';
import { renderCheck } from '../../render/check.ts';
import { renderComment } from '../../render/comment.ts';
import { renderJobsCheck, renderJobsComment } from '../../render/jobs.ts';
import { renderReviewBody, renderReviewComment } from '../../render/review.ts';
import { shownFindings } from '../../render/shown.ts';
import { numberFindings } from '../../render/standing.ts';
import { lacksBaseline } from '../../render/trend.ts';
import type { CommentView, JobsComment } from '../../render/views.ts';
import type { PostedFinding, PullRequestState } from '../../store/ports.ts';
import { asAccepted } from './accepted.ts';
import { buttons, hasFailed, writeCheck } from './check-run.ts';
import type { Dependencies } from './dependencies.ts';
import { addressOfPage, keepPage } from './keep-page.ts';
import type { Target } from './request.ts';

/** What is to be said about a commit, without the parts that depend on what was posted before. */
export type Statement = JobStatement | JobsStatement;

/** Several training jobs of one repository. */
export interface JobsStatement {
  readonly kind: 'jobs';
  readonly jobs: readonly { readonly name: string; readonly statement: JobStatement }[];
  readonly untouched: readonly string[];
}

export type JobStatement =
  | {
      readonly kind: 'report';
      readonly report: Report;
      /** The same in the other language, for the page. */
      readonly other?: Report | null;
    }
  | {
      readonly kind: 'other';
      readonly view: (base: ViewBase, before: readonly PostedFinding[]) => Exclude<CommentView, { state: 'report' }>;
    };

export interface ViewBase {
  readonly lang: Lang;
  readonly appSlug: string;
  readonly pr: number;
  readonly sha: string;
  readonly links: { readonly htmlBase: string | null; readonly report: string | null };
}

export interface Publication {
  readonly target: Target;
  readonly pull: PullRequest;
  /** The commit that was looked at; the pull request may have moved on meanwhile. */
  readonly sha: string;
  readonly lang: Lang;
  /** The settings name the language; else a page follows its reader's browser. */
  readonly isLangSaid?: boolean;
  readonly comment: Config['comment'];
  readonly suggestions: Config['suggestions'];
  /** A person asked: say it in a comment even when there is nothing to say. */
  readonly isAsked: boolean;
  /** A person asked for the review with the changes. */
  readonly wantsChanges?: boolean;
  readonly statement: Statement;
  /** What is said rests on a file that a person attached, also where it could not be read. */
  readonly isWord?: boolean;
  /** Page of the check run, which holds the full report. */
  readonly checkUrl: string | null;
  /** Text of the head's files, for annotations on lines that exist. */
  readonly source: ReadonlyMap<string, string>;
}

const STAYS_FAILED: Readonly<Record<Lang, string>> = {
  en: 'The check stays failed: an attached profile takes back nothing. `/npu-advise run` looks at the profile of the workflow run again.',
  zh: '检查仍为失败：附件中的 profile 不能推翻此前的结论。`/npu-advise run` 会重新分析工作流运行产生的 profile。',
};

function isWorthAComment(report: Report): boolean {
  if (report.gate?.outcome === 'fail') return true;
  return report.findings.some((finding) => finding.symptomOf === null && finding.severity !== 'info');
}

function mayCreate({ comment, isAsked, statement }: Publication): boolean {
  if (comment === 'off') return false;
  if (comment === 'always' || isAsked) return true;
  return reportsOf(statement).some(isWorthAComment);
}

function reportsOf(statement: Statement): Report[] {
  if (statement.kind === 'jobs') return statement.jobs.flatMap((job) => reportsOf(job.statement));
  return statement.kind === 'report' ? [statement.report] : [];
}

function findingsOf(statement: Statement): Finding[] {
  return reportsOf(statement).flatMap(({ findings }) => findings);
}

function shownIn(statement: Statement): ShownFinding[] {
  if (statement.kind !== 'jobs') return reportsOf(statement).flatMap((report) => shownFindings(report, null));
  return statement.jobs.flatMap((job) => reportsOf(job.statement).flatMap((report) => shownFindings(report, job.name)));
}

/** What is shown from now on, and since when: saying the same again changes nothing of what its numbers mean. */
function showing(
  state: PullRequestState,
  shown: readonly ShownFinding[],
  sha: string,
  now: number,
): Pick<PullRequestState, 'shown' | 'shownAt'> {
  const placesOf = (all: readonly ShownFinding[] = []): string => JSON.stringify(all.map(({ id, number, state: of }) => [id, number, of]));
  const isSame = state.reportedSha === sha && state.shownAt !== undefined && placesOf(state.shown) === placesOf(shown);
  return { shown, shownAt: isSame ? state.shownAt! : now };
}

/** The statement's text: no signs of when it was made, so that equal findings give equal text. */
function hashReports(reports: readonly Report[]): string {
  return createHash('sha256')
    .update(JSON.stringify(reports.flatMap(({ job, findings, gate }) => [job, findings, gate])))
    .digest('hex')
    .slice(0, 12);
}

function toPosted(finding: Finding): PostedFinding {
  const saving = finding.saving === null ? null : { likely: finding.saving.perStepMs.likely, ceiling: finding.saving.perStepMs.ceiling };
  return { id: finding.id, title: finding.title, saving };
}

function suggestionUrls(report: Report, posted: readonly PostedSuggestion[]): Record<string, string> {
  const byFingerprint = new Map(posted.map(({ fingerprint, url }) => [fingerprint, url]));
  const pairs = report.findings.flatMap(({ id }) => {
    const url = byFingerprint.get(safeFingerprint(id));
    return url === undefined ? [] : [[id, url] as const];
  });
  return Object.fromEntries(pairs);
}

/** The first change of every finding, then the second ones: a review holds only a few. */
function wantedSuggestions(reports: readonly Report[], lang: Lang, commentUrl: string | null): Suggestion[] {
  const numbered = reports.flatMap(({ findings }) => numberFindings(findings));
  const lists = numbered.map(({ number, finding }) => {
    if (finding.acknowledged !== undefined) return [];
    const edits = finding.recommendations.flatMap((recommendation) => recommendation.edits).filter(({ kind }) => kind === 'suggestion');
    return edits.map((edit, i): Suggestion => {
      const body = renderReviewComment(finding, edit, lang, { number, url: commentUrl });
      const fingerprint = i === 0 ? finding.id : `${finding.id}.${i + 1}`;
      return { fingerprint, path: edit.file, startLine: edit.startLine, endLine: edit.endLine, body };
    });
  });
  const most = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: most }, (_, round) => lists.flatMap((list) => list.slice(round, round + 1))).flat();
}

/**
 * Brings comment, check run and suggestions to the state the statement asks for. Whatever is already there is found and reused,
 * so that doing it again after a crash at any point changes nothing that is right.
 */
export function publish(deps: Dependencies, publication: Publication): Promise<void> {
  return deps.timed('publish', () => bringToState(deps, publication));
}

async function bringToState(deps: Dependencies, publication: Publication): Promise<void> {
  const { target, pull, sha, lang, statement } = publication;
  const { repository, installationId } = target;
  const hasReport = reportsOf(statement).length > 0;
  const octokit = await deps.github.client(installationId, repository, PERMISSIONS.publish);
  const app = await deps.github.identity();
  const place = { target, sha, pr: pull.number };

  const current = await readPullRequest(octokit, repository, pull.number);
  const isCurrent = current !== null && current.headSha === sha && current.state === 'open';
  const state: PullRequestState = (await deps.store.pullRequests.find(repository.id, pull.number)) ?? {
    repoId: repository.id,
    pr: pull.number,
    commentId: null,
    bodyHash: null,
    reportedSha: null,
    findings: [],
    before: [],
    suggested: [],
  };
  const before = state.reportedSha === sha ? state.before : state.findings;
  let posted = isCurrent && hasReport ? await listPostedSuggestions(octokit, repository, pull.number, app) : [];

  const pages = await keepPages(deps, publication);
  const viewOf = (of: JobStatement, base: ViewBase, previous: readonly PostedFinding[]): CommentView => {
    if (of.kind === 'other') return of.view(base, previous);
    return {
      ...base,
      links: { ...base.links, report: pages.get(of.report) ?? base.links.report },
      state: 'report',
      report: of.report,
      reportHash: hashReports([of.report]),
      suggestions: suggestionUrls(of.report, posted),
      previous,
      baselineMissing: lacksBaseline(of.report),
      fromFork: pull.headRepoId !== pull.baseRepoId,
      pendingSha: null,
    };
  };
  const viewWith = (report: string | null): CommentView | JobsComment => {
    const base: ViewBase = { lang, appSlug: app.slug, pr: pull.number, sha, links: { htmlBase: pull.headHtmlUrl, report } };
    if (statement.kind !== 'jobs') return viewOf(statement, base, before);
    const jobs = statement.jobs.map(({ name, statement: of }) => {
      const own = before.filter(({ id }) => jobOfFinding(id) === name);
      return { name, view: viewOf(of, { ...base, links: { ...base.links, report: null } }, own) };
    });
    return { ...base, state: 'jobs', reportHash: hashReports(reportsOf(statement)), jobs, untouched: statement.untouched };
  };

  deps.killPoint('before-comment');
  let saved = state;
  let commentUrl: string | null = null;
  const syncComment = async (): Promise<void> => {
    const view = viewWith(publication.checkUrl);
    const body = view.state === 'jobs' ? renderJobsComment(view) : renderComment(view);
    const existing = await listOwnComments(octokit, repository, pull.number, app, COMMENT_MARKER);
    const remembered = saved.commentId === null || saved.bodyHash === null ? null : { id: saved.commentId, hash: saved.bodyHash };
    const operations = planComment({ body, mayCreate: mayCreate(publication) }, existing, remembered);
    const standing = await applyComment(octokit, repository, pull.number, operations);
    if (operations.some(({ op }) => op === 'create')) deps.killPoint('after-comment-created');
    commentUrl = standing?.url ?? existing[0]?.url ?? null;
    // By GitHub's clock, which also tells when a command was written; ours may be slow.
    const writtenAt = standing?.at ?? existing.find(({ id }) => id === standing?.id)?.at ?? deps.now();
    const findings = findingsOf(statement)
      .filter(({ severity }) => severity !== 'info')
      .map(toPosted);
    saved = {
      ...saved,
      commentId: standing?.id ?? null,
      bodyHash: standing?.isCurrent === true ? hashBody(body) : null,
      ...(hasReport ? { reportedSha: sha, findings, before, ...showing(saved, shownIn(statement), sha, writtenAt) } : {}),
    };
    await deps.store.pullRequests.put(saved);
    if (operations.some(({ op }) => op === 'create')) await removeDuplicates();
  };
  /** Reads may lag behind writes: after a creation, look once more and keep the oldest. */
  const removeDuplicates = async (): Promise<void> => {
    const again = await listOwnComments(octokit, repository, pull.number, app, COMMENT_MARKER);
    const [oldest, ...surplus] = again;
    if (oldest === undefined || surplus.length === 0) return;
    await applyComment(
      octokit,
      repository,
      pull.number,
      surplus.map(({ id }) => ({ op: 'delete', id }) as const),
    );
    saved = { ...saved, commentId: oldest.id, bodyHash: null };
    await deps.store.pullRequests.put(saved);
  };
  if (isCurrent) await deps.store.database.exclusively(`comment/${repository.id}/${pull.number}`, syncComment);

  /** Changes that are posted only when somebody asks for them, and nobody has. */
  const mayBeSuggested = (): boolean => {
    if (!isCurrent || !hasReport || publication.suggestions !== 'on-request' || publication.isAsked) return false;
    const known = new Set([...posted.map(({ fingerprint }) => fingerprint), ...saved.suggested.map(safeFingerprint)]);
    return wantedSuggestions(reportsOf(statement), lang, commentUrl).some(({ fingerprint }) => !known.has(safeFingerprint(fingerprint)));
  };

  deps.killPoint('between-comment-and-check');
  const syncCheck = async (): Promise<void> => {
    const said = viewWith(null);
    const annotatable = annotatableIn(publication.source);
    const rendered = said.state === 'jobs' ? renderJobsCheck(said, annotatable) : renderCheck({ comment: said, annotatable });
    const isOpen = isCurrent && shownIn(statement).some(({ state: of }) => of === 'open');
    const offered: CheckAction[] = [
      'rerun',
      ...(isOpen ? (['ack-all'] as const) : []),
      ...(mayBeSuggested() ? (['suggest'] as const) : []),
    ];
    const isWord = publication.isWord === true || reportsOf(statement).some(({ attached }) => attached === true);
    const stays = isWord && rendered.conclusion !== 'failure' && (await hasFailed(deps, place));
    const kept = stays ? ({ conclusion: 'failure', summary: `${STAYS_FAILED[lang]}\n\n${rendered.summary}` } as const) : {};
    await writeCheck(
      deps,
      place,
      { ...rendered, ...kept, actions: rendered.status === 'completed' ? buttons(offered, lang) : [], lang, ...detailsOf(pages) },
      hasReport,
    );
  };
  await syncCheck();
  deps.killPoint('after-check-updated');

  if (!isCurrent || !hasReport) return;
  if (publication.suggestions === 'off' || (publication.suggestions === 'on-request' && !publication.isAsked)) return;
  const wanted = wantedSuggestions(reportsOf(statement), lang, commentUrl);
  if (wanted.length === 0) return;
  const files: ChangedFile[] = await listChangedFiles(octokit, repository, pull.number);
  // Once for each commit by itself; as often as somebody asks for them.
  const earlier = publication.wantsChanges === true ? posted.map((one) => ({ ...one, sha: '' })) : posted;
  const chosen = planReview(wanted, earlier, saved.suggested, files, sha);
  if (chosen.length === 0) return;
  // The diff was read after the head; if the head moved in between, GitHub's own check of commit and lines decides.
  const still = await readPullRequest(octokit, repository, pull.number);
  if (still?.headSha !== sha) return;
  const isPosted = await postReview(octokit, repository, pull.number, {
    headSha: sha,
    body: renderReviewBody(chosen.length, sha, lang, commentUrl),
    suggestions: chosen,
  });
  deps.killPoint('after-suggestions');
  if (!isPosted) {
    deps.log.warn({ repository: repository.id, pr: pull.number }, 'suggestions were refused');
    return;
  }
  saved = { ...saved, suggested: [...new Set([...saved.suggested, ...chosen.map(({ fingerprint }) => fingerprint)])].slice(-500) };
  await deps.store.pullRequests.put(saved);
  // Second edit, without a mail to anyone: the rows of comment and check now link to their suggestions.
  posted = await listPostedSuggestions(octokit, repository, pull.number, app);
  await deps.store.database.exclusively(`comment/${repository.id}/${pull.number}`, syncComment);
  await syncCheck();
}

/**
 * A new commit: the comment, if there is one, keeps the figures of the commit before and says that newer ones are on their way.
 */
export async function showPending(deps: Dependencies, target: Target, pull: PullRequest, config: Config): Promise<void> {
  const { repository, installationId } = target;
  await deps.store.database.exclusively(`comment/${repository.id}/${pull.number}`, async () => {
    const state = await deps.store.pullRequests.find(repository.id, pull.number);
    if (state === null || state.commentId === null || state.reportedSha === null || state.reportedSha === pull.headSha) return;
    const kept = Report.safeParse(await deps.store.reports.latest(repository.id, state.reportedSha, pull.number));
    const { lang } = config;
    if (!kept.success || kept.data.lang !== lang) return;
    const report = await asAccepted(deps, repository.id, pull.number, kept.data, { name: null, config });
    const octokit = await deps.github.client(installationId, repository, PERMISSIONS.publish);
    const app = await deps.github.identity();
    const [comment] = await listOwnComments(octokit, repository, pull.number, app, COMMENT_MARKER);
    // Only a comment that still shows that report; anything else is newer than what we know.
    if (comment?.id !== state.commentId || !comment.body.includes(` sha=${state.reportedSha} `)) return;
    // Of several jobs the store has no common report; their comment stays as it is.
    if (/^<!-- npu-advisor:state [^\n]* jobs=/m.test(comment.body)) return;
    const page = await addressOfPage(deps, { repoId: repository.id, pr: pull.number, sha: state.reportedSha, job: null });
    const body = renderComment({
      lang,
      appSlug: app.slug,
      pr: pull.number,
      sha: state.reportedSha,
      links: {
        htmlBase: pull.headHtmlUrl,
        report: page ?? (await deps.store.checks.find(repository.id, state.reportedSha, pull.number))?.url ?? null,
      },
      state: 'report',
      report,
      reportHash: hashReports([report]),
      suggestions: suggestionUrls(report, await listPostedSuggestions(octokit, repository, pull.number, app)),
      previous: state.before,
      baselineMissing: lacksBaseline(report),
      fromFork: pull.headRepoId !== pull.baseRepoId,
      pendingSha: pull.headSha,
    });
    const standing = await applyComment(octokit, repository, pull.number, [{ op: 'update', id: comment.id, body }]);
    const shown = showing(state, shownFindings(report, null), state.reportedSha, standing?.at ?? deps.now());
    await deps.store.pullRequests.put({ ...state, bodyHash: standing?.isCurrent === true ? hashBody(body) : null, ...shown });
  });
}

/** Addresses of the pages of what is said. */
async function keepPages(
  deps: Dependencies,
  { target, pull, sha, statement, isLangSaid = false }: Publication,
): Promise<ReadonlyMap<Report, string>> {
  const named = statement.kind === 'jobs' ? statement.jobs : [{ name: null, statement }];
  const pages = new Map<Report, string>();
  for (const { name, statement: of } of named) {
    if (of.kind !== 'report') continue;
    const subject = { repoId: target.repository.id, pr: pull.number, sha, job: name };
    const fromFork = pull.headRepoId !== pull.baseRepoId;
    const url = await keepPage(deps, of.report, { ...subject, htmlBase: pull.headHtmlUrl, fromFork, isLangSaid }, of.other);
    if (url !== null) pages.set(of.report, url);
  }
  return pages;
}

/** A check has one page of details; of several jobs that of the first whose gate fails. */
export function detailsOf(pages: ReadonlyMap<Report, string>): { detailsUrl?: string } {
  const [first] = pages;
  const [, url] = [...pages].find(([{ gate }]) => gate?.outcome === 'fail') ?? first ?? [];
  return url === undefined ? {} : { detailsUrl: url };
}

/** The comment of several jobs: which of them have arrived for a newer commit, and which are awaited. Its figures stay those it has. */
export async function noteAwaited(
  deps: Dependencies,
  target: Target,
  pull: PullRequest,
  lang: Lang,
  awaited: readonly AwaitedJob[],
): Promise<void> {
  const { repository, installationId } = target;
  await deps.store.database.exclusively(`comment/${repository.id}/${pull.number}`, async () => {
    const state = await deps.store.pullRequests.find(repository.id, pull.number);
    if (state === null || state.commentId === null || state.reportedSha === null || state.reportedSha === pull.headSha) return;
    const octokit = await deps.github.client(installationId, repository, PERMISSIONS.publish);
    const app = await deps.github.identity();
    const [comment] = await listOwnComments(octokit, repository, pull.number, app, COMMENT_MARKER);
    const [, line] = comment?.body.split('\n', 2) ?? [];
    if (comment?.id !== state.commentId || !/ jobs=/.test(line ?? '') || !line?.includes(` sha=${state.reportedSha} `)) return;
    const body = withAwaitedNote(comment.body, awaited, state.reportedSha, pull.headSha, lang);
    if (body === comment.body) return;
    const standing = await applyComment(octokit, repository, pull.number, [{ op: 'update', id: comment.id, body }]);
    await deps.store.pullRequests.put({ ...state, bodyHash: standing?.isCurrent === true ? hashBody(body) : null });
  });
}

function annotatableIn(source: ReadonlyMap<string, string>): (path: string, line: number) => boolean {
  const counts = new Map<string, number>();
  return (path, line) => {
    const text = source.get(path);
    if (text === undefined) return false;
    let count = counts.get(path);
    if (count === undefined) {
      count = text.split('\n').length;
      counts.set(path, count);
    }
    return line >= 1 && line <= count;
  };
}
