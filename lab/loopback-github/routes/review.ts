/** Reviews and review comments. */
import { ApiError } from '../api-error.ts';
import {
  actorOf,
  bodyInteger,
  bodyText,
  type Call,
  found,
  type Handlers,
  integer,
  page,
  pullOf,
  type Reply,
  repositoryOf,
} from '../call.ts';
import { diffCommits, type FileDiff, hunkHeader, placeOf } from '../diff.ts';
import { ancestry } from '../git.ts';
import { isObject, type JsonObject } from '../json.ts';
import { diffBase } from '../present/pull.ts';
import { reviewCommentJson, reviewJson } from '../present/review.ts';
import {
  checkAuthor,
  checkBody,
  checkReviewAuthor,
  checkReviewCommit,
  checkReviewContent,
  checkReviewLines,
  checkSuggestion,
  checkUnlocked,
  type ReviewCommentDraft,
} from '../rules.ts';
import { type Account, nextId, now, type PullRequest, type Repository, type Review, type ReviewComment } from '../state.ts';

const STATES = { APPROVE: 'APPROVED', REQUEST_CHANGES: 'CHANGES_REQUESTED', COMMENT: 'COMMENTED' } as const;

function sideOf(value: unknown): 'LEFT' | 'RIGHT' | null {
  if (value === undefined || value === null) return null;
  if (value === 'LEFT' || value === 'RIGHT') return value;
  throw new ApiError(422, 'Unprocessable Entity', {
    errors: [`side must be LEFT or RIGHT, not ${String(value)}`],
    rule: { name: 'review-side', blame: 'client' },
  });
}

function draftOf(value: JsonObject): ReviewCommentDraft {
  const side = sideOf(value.side) ?? 'RIGHT';
  const startLine = bodyInteger(value, 'start_line');
  return {
    path: bodyText(value, 'path') ?? '',
    body: bodyText(value, 'body') ?? '',
    line: bodyInteger(value, 'line'),
    side,
    startLine,
    startSide: startLine === null ? null : (sideOf(value.start_side) ?? side),
  };
}

/** The lines a comment covers, as they are in the head commit; null on the old side. */
function coveredLines(repository: Repository, commit: string, draft: ReviewCommentDraft): string[] | null {
  if (draft.side === 'LEFT' || draft.line === null) return null;
  const blob = repository.objects.commits.get(commit)?.files.get(draft.path);
  const lines = (repository.objects.blobs.get(blob ?? '')?.toString('utf8') ?? '').split('\n');
  return lines.slice((draft.startLine ?? draft.line) - 1, draft.line);
}

/** The hunk from its header down to the commented line, as GitHub shows it above the comment. */
function hunkAbove(file: FileDiff, draft: ReviewCommentDraft): string {
  const place = draft.line === null ? null : placeOf(file, draft.side, draft.line);
  const hunk = place ? file.hunks[place.hunk] : undefined;
  return hunk && place ? [hunkHeader(hunk), ...hunk.lines.slice(0, place.index + 1)].join('\n') : '';
}

function accept(call: Call, pull: PullRequest, review: Review, user: Account, draft: ReviewCommentDraft, files: FileDiff[]): ReviewComment {
  const file = files.find((candidate) => candidate.path === draft.path);
  const place = file && draft.line !== null ? placeOf(file, draft.side, draft.line) : null;
  const at = now(call.state);
  return {
    id: nextId(call.state, 'reviewComment'),
    number: pull.number,
    review,
    user,
    body: draft.body,
    path: draft.path,
    side: draft.side,
    startSide: draft.startSide,
    line: draft.line,
    startLine: draft.startLine,
    originalLine: draft.line ?? 1,
    originalStartLine: draft.startLine,
    position: place?.position ?? null,
    originalPosition: place?.position ?? 1,
    commitId: review.commitId,
    originalCommitId: review.commitId,
    diffHunk: file ? hunkAbove(file, draft) : '',
    inReplyTo: null,
    subject: 'line',
    createdAt: at,
    updatedAt: at,
    reactions: [],
  };
}

function reviewCommit(call: Call, pull: PullRequest): string {
  const sha = bodyText(call.body, 'commit_id') ?? pull.head.sha;
  const { objects } = pull.repository;
  const base = new Set(ancestry(objects, pull.base.sha));
  checkReviewCommit(objects.commits.has(sha) && !base.has(sha) && ancestry(objects, pull.head.sha).includes(sha));
  return sha;
}

function checkDrafts(pull: PullRequest, commit: string, drafts: ReviewCommentDraft[], files: FileDiff[]): void {
  for (const draft of drafts) {
    checkBody(draft.body, 'PullRequestReviewComment');
    checkReviewLines(
      files.find((file) => file.path === draft.path),
      draft,
    );
    checkSuggestion(draft, coveredLines(pull.repository, commit, draft));
  }
}

function createReview(call: Call): Reply {
  const pull = pullOf(call);
  checkUnlocked(pull.locked);
  const user = actorOf(call);
  const event = bodyText(call.body, 'event');
  const body = bodyText(call.body, 'body') ?? '';
  const drafts = (Array.isArray(call.body.comments) ? call.body.comments : []).filter(isObject).map(draftOf);
  checkReviewContent(event, body, drafts.length);
  if (body !== '') checkBody(body, 'PullRequestReview');
  checkReviewAuthor(event, pull.author === user);
  const commitId = reviewCommit(call, pull);
  const files = diffCommits(pull.repository.objects, diffBase(pull, commitId), commitId);
  // All or nothing: one bad line refuses the whole review.
  checkDrafts(pull, commitId, drafts, files);
  const review: Review = {
    id: nextId(call.state, 'review'),
    number: pull.number,
    user,
    viaApp: true,
    body,
    state: event === 'APPROVE' || event === 'REQUEST_CHANGES' || event === 'COMMENT' ? STATES[event] : 'PENDING',
    commitId,
    submittedAt: event === null ? null : now(call.state),
  };
  pull.repository.reviews.push(review);
  for (const draft of drafts) pull.repository.reviewComments.push(accept(call, pull, review, user, draft, files));
  return { status: 200, body: reviewJson(call.state, pull.repository, review) };
}

function createReviewComment(call: Call): Reply {
  const pull = pullOf(call);
  const user = actorOf(call);
  const commitId = reviewCommit(call, pull);
  const files = diffCommits(pull.repository.objects, diffBase(pull, commitId), commitId);
  const draft = draftOf(call.body);
  checkDrafts(pull, commitId, [draft], files);
  const review: Review = {
    id: nextId(call.state, 'review'),
    number: pull.number,
    user,
    viaApp: true,
    body: '',
    state: 'COMMENTED',
    commitId,
    submittedAt: now(call.state),
  };
  const comment = accept(call, pull, review, user, draft, files);
  pull.repository.reviews.push(review);
  pull.repository.reviewComments.push(comment);
  return { status: 201, body: reviewCommentJson(call.state, pull.repository, comment) };
}

function reviewOf(call: Call): { pull: PullRequest; review: Review } {
  const pull = pullOf(call);
  const id = integer(call, 'review_id');
  return { pull, review: found(pull.repository.reviews.find((review) => review.id === id && review.number === pull.number)) };
}

function reviewCommentOf(call: Call): { repository: Repository; comment: ReviewComment } {
  const repository = repositoryOf(call);
  const id = integer(call, 'comment_id');
  return { repository, comment: found(repository.reviewComments.find((comment) => comment.id === id)) };
}

/** Handlers of this area. */
export const reviewHandlers: Handlers = {
  'pulls/list-reviews': (call) => {
    const pull = pullOf(call);
    const { items, headers } = page(
      call,
      pull.repository.reviews.filter((review) => review.number === pull.number),
    );
    return { status: 200, body: items.map((review) => reviewJson(call.state, pull.repository, review)), headers };
  },

  'pulls/get-review': (call) => {
    const { pull, review } = reviewOf(call);
    return { status: 200, body: reviewJson(call.state, pull.repository, review) };
  },

  'pulls/create-review': createReview,

  'pulls/update-review': (call) => {
    const { pull, review } = reviewOf(call);
    checkAuthor(review.user === actorOf(call));
    const body = bodyText(call.body, 'body') ?? '';
    checkBody(body, 'PullRequestReview');
    review.body = body;
    return { status: 200, body: reviewJson(call.state, pull.repository, review) };
  },

  'pulls/list-comments-for-review': (call) => {
    const { pull, review } = reviewOf(call);
    const { items, headers } = page(
      call,
      pull.repository.reviewComments.filter((comment) => comment.review === review),
    );
    return { status: 200, body: items.map((comment) => reviewCommentJson(call.state, pull.repository, comment, true)), headers };
  },

  'pulls/list-review-comments': (call) => {
    const pull = pullOf(call);
    const { items, headers } = page(
      call,
      pull.repository.reviewComments.filter((comment) => comment.number === pull.number),
    );
    return { status: 200, body: items.map((comment) => reviewCommentJson(call.state, pull.repository, comment)), headers };
  },

  'pulls/get-review-comment': (call) => {
    const { repository, comment } = reviewCommentOf(call);
    return { status: 200, body: reviewCommentJson(call.state, repository, comment) };
  },

  'pulls/create-review-comment': createReviewComment,

  'pulls/update-review-comment': (call) => {
    const { repository, comment } = reviewCommentOf(call);
    checkAuthor(comment.user === actorOf(call));
    const body = bodyText(call.body, 'body') ?? '';
    checkBody(body, 'PullRequestReviewComment');
    comment.body = body;
    comment.updatedAt = now(call.state);
    return { status: 200, body: reviewCommentJson(call.state, repository, comment) };
  },

  'pulls/delete-review-comment': (call) => {
    const { repository, comment } = reviewCommentOf(call);
    checkAuthor(comment.user === actorOf(call));
    repository.reviewComments = repository.reviewComments.filter((candidate) => candidate !== comment);
    return { status: 204 };
  },
};
