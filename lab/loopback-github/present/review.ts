/** Reviews and review comments as the API shows them. */
import type { JsonObject } from '../json.ts';
import type { HubState, Repository, Review, ReviewComment } from '../state.ts';
import { accountJson, nodeId } from './account.ts';
import { association, rollup } from './pull.ts';
import { repositoryApi, repositoryHtml } from './repository.ts';

/** A review. */
export function reviewJson(state: HubState, repository: Repository, review: Review): JsonObject {
  const html = `${repositoryHtml(state, repository)}/pull/${review.number}#pullrequestreview-${review.id}`;
  const pull = `${repositoryApi(state, repository)}/pulls/${review.number}`;
  return {
    id: review.id,
    node_id: nodeId('PRR', review.id),
    user: accountJson(state, review.user),
    body: review.body,
    state: review.state,
    html_url: html,
    pull_request_url: pull,
    author_association: association(repository, review.user),
    _links: { html: { href: html }, pull_request: { href: pull } },
    ...(review.submittedAt === null ? {} : { submitted_at: review.submittedAt }),
    commit_id: review.commitId,
  };
}

/** A review comment. `plain` is the older shape that "list comments for a pull request review" answers. */
export function reviewCommentJson(state: HubState, repository: Repository, comment: ReviewComment, plain = false): JsonObject {
  const self = `${repositoryApi(state, repository)}/pulls/comments/${comment.id}`;
  const pull = `${repositoryApi(state, repository)}/pulls/${comment.number}`;
  const html = `${repositoryHtml(state, repository)}/pull/${comment.number}#discussion_r${comment.id}`;
  const position = plain || comment.position !== null ? { position: comment.position } : {};
  return {
    url: self,
    pull_request_review_id: comment.review.id,
    id: comment.id,
    node_id: nodeId('PRRC', comment.id),
    diff_hunk: comment.diffHunk,
    path: comment.path,
    commit_id: comment.commitId,
    original_commit_id: comment.originalCommitId,
    user: accountJson(state, comment.user),
    body: comment.body,
    created_at: comment.createdAt,
    updated_at: comment.updatedAt,
    html_url: html,
    pull_request_url: pull,
    author_association: association(repository, comment.user),
    _links: { self: { href: self }, html: { href: html }, pull_request: { href: pull } },
    reactions: rollup(
      `${self}/reactions`,
      comment.reactions.map((reaction) => reaction.content),
    ),
    start_line: comment.startLine,
    original_start_line: comment.originalStartLine,
    start_side: comment.startSide,
    line: comment.line,
    original_line: comment.originalLine,
    side: comment.side,
    original_position: comment.originalPosition,
    ...position,
    subject_type: comment.subject,
    ...(comment.inReplyTo === null ? {} : { in_reply_to_id: comment.inReplyTo }),
  };
}
