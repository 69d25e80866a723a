/**
 * Rules GitHub enforces that its OpenAPI description does not state. Each names its source: [docs] docs.github.com, [issue] a user report,
 * [spec] prose of the description, [recall] known from use and not re-checked.
 */
import { ApiError, type RuleBreach } from './api-error.ts';
import type { FileDiff } from './diff.ts';
import { placeOf } from './diff.ts';
import type { JsonObject } from './json.ts';
import { isObject } from './json.ts';
import { commentParts } from './suggestions.ts';

function breach(name: string, blame: RuleBreach['blame'], status: number, message: string, errors?: unknown[]): ApiError {
  return new ApiError(status, message, { ...(errors ? { errors } : {}), rule: { name, blame } });
}

/** `user-agent-required`: requests without a User-Agent are rejected [docs, "Getting started with the REST API"]. */
export function requireUserAgent(userAgent: string | undefined): void {
  if (userAgent?.trim()) return;
  throw breach(
    'user-agent-required',
    'client',
    403,
    'Request forbidden by administrative rules. Please make sure your request has a User-Agent header',
  );
}

/** API versions GitHub serves [docs, "API versions", read for 3.20 and github.com]. */
export const API_VERSIONS = ['2022-11-28', '2026-03-10'];
/** The only one of GitHub Enterprise Server up to 3.19 [docs, "API versions"]. */
export const ENTERPRISE_API_VERSIONS = ['2022-11-28'];

/**
 * `api-version`: an unsupported X-GitHub-Api-Version is 400 [docs, "API versions"].
 * `accept`: an Accept header that excludes JSON and GitHub's media types is 415 [recall]; `bytes`: but for the content of release assets.
 */
export function checkHeaders(version: unknown, versions: readonly string[], accept: string | undefined, bytes: boolean): void {
  if (version !== undefined && !versions.includes(String(version))) {
    throw breach('api-version', 'client', 400, `The API version ${String(version)} is not supported.`);
  }
  if (bytes && accept === 'application/octet-stream') return;
  if (accept !== undefined && !/\*\/\*|application\/(\*|[\w.+-]*json|vnd\.github)/.test(accept)) {
    throw breach('accept', 'client', 415, `Unsupported 'Accept' header: '${accept}'. Must accept 'application/json'.`);
  }
}

/** `per-page-limit`: at most 100 per page; GitHub silently gives 100 [docs, "Using pagination in the REST API"]. */
export function perPageFault(perPage: unknown): string | null {
  return typeof perPage === 'number' && (perPage > 100 || perPage < 1) ? `per_page is ${perPage}, the limit is 100` : null;
}

const MAX_BODY = 65_536;

/**
 * `comment-body-length`: "Body is too long (maximum is 65536 characters)" [issue machine-learning-apps/pr-comment#2,
 * peter-evans/create-or-update-comment#271]. Characters are code points: the column holds four bytes for each [recall].
 * `comment-body-blank`: "Body can't be blank" [recall].
 */
export function checkBody(body: string, resource: string): void {
  const invalid = (name: string, message: string): ApiError =>
    breach(name, 'client', 422, 'Validation Failed', [{ resource, code: 'unprocessable', field: 'data', message }]);
  if (body.trim() === '') throw invalid('comment-body-blank', "Body can't be blank");
  if (body.length > MAX_BODY && [...body].length > MAX_BODY)
    throw invalid('comment-body-length', 'Body is too long (maximum is 65536 characters)');
}

/** `unseen-repository`: 404 instead of 403 for what the caller must not know of [docs, "Troubleshooting the REST API"]. */
export function unseenRepository(): ApiError {
  return breach('unseen-repository', 'circumstance', 404, 'Not Found');
}

/** `permission-missing`: 403 with the permissions that would do [docs, "Troubleshooting the REST API"]. */
export function permissionMissing(accepted: string): ApiError {
  return new ApiError(403, 'Resource not accessible by integration', {
    headers: { 'x-accepted-github-permissions': accepted },
    rule: { name: 'permission-missing', blame: 'circumstance' },
  });
}

/** `conversation-locked`: apps cannot comment, react or review there [issue renovatebot/renovate#6215, probot/stale#25]. */
export function checkUnlocked(locked: boolean): void {
  if (locked) throw breach('conversation-locked', 'circumstance', 403, 'Unable to create comment because issue is locked.');
}

/** `repository-archived`: nothing can be written there [issue r-universe-org/help#247, for a commit status]. */
export function checkWritable(archived: boolean): void {
  if (archived) throw breach('repository-archived', 'circumstance', 403, 'Repository was archived so is read-only.');
}

/** `artifact-expired`: 410 once an artifact has expired or was removed [spec, actions/download-artifact]. */
export function checkArtifact(expired: boolean): void {
  if (expired) throw breach('artifact-expired', 'circumstance', 410, 'Artifact has expired');
}

/** `foreign-comment`: an installation edits and deletes what it wrote itself [recall]. */
export function checkAuthor(own: boolean): void {
  if (!own) throw breach('foreign-comment', 'circumstance', 403, 'Resource not accessible by integration');
}

const ANNOTATION_BYTES = 64 * 1024;

/**
 * `check-run-conclusion`: a completed run needs a conclusion, `stale` is GitHub's own [spec, checks/create].
 * `annotation-size`: message and raw details at most 64 KB, title 255 characters [spec, checks/create].
 * `annotation-columns`: columns only when the annotation is on one line [spec, checks/create].
 * `annotation-lines`: lines start at 1 and do not run backwards [recall].
 */
export function checkRunBody(body: JsonObject): void {
  const invalid = (name: string, message: string): ApiError => breach(name, 'client', 422, `Invalid request.\n\n${message}`);
  if (body.status === 'completed' && typeof body.conclusion !== 'string') {
    throw invalid('check-run-conclusion', 'A completed check run needs a "conclusion".');
  }
  if (body.conclusion === 'stale') throw invalid('check-run-conclusion', 'Only GitHub can mark a check run as stale.');
  const annotations = isObject(body.output) && Array.isArray(body.output.annotations) ? body.output.annotations : [];
  for (const annotation of annotations.filter(isObject)) {
    for (const field of ['message', 'raw_details']) {
      const value = annotation[field];
      if (typeof value === 'string' && Buffer.byteLength(value) > ANNOTATION_BYTES)
        throw invalid('annotation-size', `"${field}" exceeds 64 KB.`);
    }
    if (typeof annotation.title === 'string' && [...annotation.title].length > 255)
      throw invalid('annotation-size', '"title" exceeds 255 characters.');
    const start = Number(annotation.start_line);
    const end = Number(annotation.end_line);
    if (start < 1 || end < start) throw invalid('annotation-lines', `Lines ${start} to ${end} are not a range.`);
    if (start !== end && (annotation.start_column !== undefined || annotation.end_column !== undefined)) {
      throw invalid('annotation-columns', 'Columns need "start_line" and "end_line" to be the same.');
    }
  }
}

/** A comment of a review before it is accepted. */
export interface ReviewCommentDraft {
  path: string;
  body: string;
  line: number | null;
  side: 'LEFT' | 'RIGHT';
  startLine: number | null;
  startSide: 'LEFT' | 'RIGHT' | null;
}

/**
 * `review-line-in-diff`: a comment's lines must be part of the difference, else the whole review is refused. Wording as in
 * warpdotdev/oz-for-oss#310 (2026-04); until 2025 it was "Pull request review thread line must be part of the diff" [issue danobi/prr#11,
 * parkerbxyz/suggest-changes#64], so no client may rely on it.
 * `review-line-range`: the first line of a range lies above the last, in the same hunk [recall].
 */
export function checkReviewLines(file: FileDiff | undefined, draft: ReviewCommentDraft): void {
  const refused = (message: string): ApiError => breach('review-line-in-diff', 'circumstance', 422, 'Unprocessable Entity', [message]);
  if (!file) throw refused('Path could not be resolved');
  const end = draft.line === null ? null : placeOf(file, draft.side, draft.line);
  if (!end) throw refused('Line could not be resolved');
  if (draft.startLine === null) return;
  const start = placeOf(file, draft.startSide ?? draft.side, draft.startLine);
  if (!start) throw refused('Start line could not be resolved');
  if (start.hunk !== end.hunk || start.index >= end.index) {
    throw breach('review-line-range', 'client', 422, 'Unprocessable Entity', ['Start line must precede the end line in the same hunk']);
  }
}

/**
 * `suggestion-on-deleted-line`: suggestions cannot target deleted lines; `suggestion-without-change`: they must change something
 * [issue fun-stack/sdk-scala#306 quotes the interface]. The interface refuses to apply them; here the review is refused, so that no test
 * passes with a suggestion nobody can apply.
 * `suggestion-unclosed`: the fence must end, or the comment shows raw text.
 */
export function checkSuggestion(draft: ReviewCommentDraft, oldLines: readonly string[] | null): void {
  const { parts, unclosed } = commentParts(draft.body);
  const refused = (name: string, message: string): ApiError => breach(name, 'client', 422, 'Unprocessable Entity', [message]);
  if (unclosed) throw refused('suggestion-unclosed', 'Suggestion block is not closed');
  for (const part of parts) {
    if (!('suggestion' in part)) continue;
    if (draft.side === 'LEFT') throw refused('suggestion-on-deleted-line', 'Suggestions cannot be applied on deleted lines');
    if (oldLines && oldLines.join('\n') === part.suggestion) throw refused('suggestion-without-change', 'Suggestion makes no change');
  }
}

/** `review-commit`: the commit must be part of the pull request [recall]. */
export function checkReviewCommit(known: boolean): void {
  if (!known) throw breach('review-commit', 'circumstance', 422, 'Unprocessable Entity', ['Commit is not part of the pull request']);
}

/** `review-empty`: a COMMENT or REQUEST_CHANGES review needs a body, a COMMENT review at least comments [spec, pulls/create-review]. */
export function checkReviewContent(event: string | null, body: string, comments: number): void {
  if (event === 'REQUEST_CHANGES' && body.trim() === '')
    throw breach('review-empty', 'client', 422, 'Unprocessable Entity', ["Body can't be blank"]);
  if (event === 'COMMENT' && body.trim() === '' && comments === 0) {
    throw breach('review-empty', 'client', 422, 'Unprocessable Entity', ["Body can't be blank"]);
  }
}

/** `own-pull-request`: nobody approves or rejects the own pull request [recall]. */
export function checkReviewAuthor(event: string | null, own: boolean): void {
  if (own && event === 'APPROVE')
    throw breach('own-pull-request', 'client', 422, 'Unprocessable Entity', ['Can not approve your own pull request']);
}
