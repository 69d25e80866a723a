/** The final state of a pull request as plain data, for assertions and for printing. */

import { diffCommits } from './diff.ts';
import { diffBase } from './present/pull.ts';
import type { CheckRun, HubState, PullRequest, ReviewComment } from './state.ts';

/** A comment of the conversation. */
interface CommentView {
  id: number;
  author: string;
  viaApp: boolean;
  body: string;
  url: string;
  reactions: string[];
}

/** A check run with all its annotations. */
interface CheckView {
  id: number;
  name: string;
  headSha: string;
  status: string;
  conclusion: string | null;
  externalId: string;
  detailsUrl: string | null;
  title: string | null;
  summary: string | null;
  text: string | null;
  annotations: CheckRun['annotations'];
  actions: CheckRun['actions'];
  history: CheckRun['history'];
  url: string;
}

/** A review with its comments. */
interface ReviewView {
  id: number;
  author: string;
  state: string;
  body: string;
  commitId: string;
  comments: (Pick<ReviewComment, 'id' | 'path' | 'line' | 'startLine' | 'side' | 'body' | 'originalLine'> & { url: string })[];
}

/** Everything people see of a pull request. */
export interface PullView {
  number: number;
  title: string;
  state: string;
  headSha: string;
  url: string;
  comments: CommentView[];
  /** Of every commit of the pull request, oldest first. */
  checks: CheckView[];
  reviews: ReviewView[];
  /** Reactions as `commentId login content`. */
  reactions: string[];
  files: { path: string; status: string; additions: number; deletions: number; patch: string | null }[];
}

/** The view of a pull request. */
export function viewPull(state: HubState, pull: PullRequest): PullView {
  const { repository } = pull;
  const html = `${state.url}/${repository.owner.login}/${repository.name}`;
  const url = `${html}/pull/${pull.number}`;
  const heads = new Set([...pull.pastHeads, pull.head.sha]);
  const comments = repository.comments.filter((comment) => comment.number === pull.number);
  return {
    number: pull.number,
    title: pull.title,
    state: pull.state,
    headSha: pull.head.sha,
    url,
    comments: comments.map((comment) => ({
      id: comment.id,
      author: comment.user.login,
      viaApp: comment.viaApp,
      body: comment.body,
      url: `${url}#issuecomment-${comment.id}`,
      reactions: comment.reactions.map((reaction) => reaction.content),
    })),
    checks: repository.checkRuns
      .filter((run) => heads.has(run.headSha))
      .map((run) => ({
        id: run.id,
        name: run.name,
        headSha: run.headSha,
        status: run.status,
        conclusion: run.conclusion,
        externalId: run.externalId,
        detailsUrl: run.detailsUrl,
        title: run.title,
        summary: run.summary,
        text: run.text,
        annotations: run.annotations.map((annotation) => ({ ...annotation })),
        actions: run.actions.map((action) => ({ ...action })),
        history: [...run.history],
        url: `${html}/runs/${run.id}`,
      })),
    reviews: repository.reviews
      .filter((review) => review.number === pull.number)
      .map((review) => ({
        id: review.id,
        author: review.user.login,
        state: review.state,
        body: review.body,
        commitId: review.commitId,
        comments: repository.reviewComments
          .filter((comment) => comment.review === review)
          .map(({ id, path, line, startLine, side, body, originalLine }) => ({
            ...{ id, path, line, startLine, side, body, originalLine },
            url: `${url}#discussion_r${id}`,
          })),
      })),
    reactions: comments.flatMap((comment) =>
      comment.reactions.map((reaction) => `${comment.id} ${reaction.user.login} ${reaction.content}`),
    ),
    files: diffCommits(repository.objects, diffBase(pull), pull.head.sha).map(({ path, status, additions, deletions, patch }) => ({
      ...{ path, status, additions, deletions, patch },
    })),
  };
}
