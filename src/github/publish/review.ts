import { type AppIdentity, type Octokit, type RepositoryRef, refusalOf, statusOf } from '../client.ts';
import { type ChangedFile, isInDiff } from '../diff.ts';
import { isOurs } from './comment.ts';

export const MAX_SUGGESTIONS = 3;

/** A change that can be taken over with one click. `fingerprint` is the finding's id. */
export interface Suggestion {
  readonly fingerprint: string;
  readonly path: string;
  readonly startLine: number;
  readonly endLine: number;
  readonly body: string;
}

/** A suggestion of ours that is already on the pull request. */
export interface PostedSuggestion {
  readonly fingerprint: string;
  readonly url: string;
  readonly sha: string;
}

const MARKER = /<!-- npu-advisor:suggestion id=([\w.:-]{1,200}) -->/;

/** A fingerprint that cannot end the HTML comment it stands in. */
export function safeFingerprint(fingerprint: string): string {
  return fingerprint
    .replace(/[^\w.:-]/g, '_')
    .replace(/--+/g, '-')
    .slice(0, 200);
}

function markerOf(fingerprint: string): string {
  return `<!-- npu-advisor:suggestion id=${safeFingerprint(fingerprint)} -->`;
}

/** Suggestions of ours on the pull request, found by author and marker, so that a lost answer does not lead to a second one. */
export async function listPostedSuggestions(
  octokit: Octokit,
  repository: RepositoryRef,
  number: number,
  app: AppIdentity,
): Promise<PostedSuggestion[]> {
  const comments = await octokit.paginate(octokit.rest.pulls.listReviewComments, {
    owner: repository.owner,
    repo: repository.name,
    pull_number: number,
    per_page: 100,
  });
  return comments.flatMap((comment) => {
    const fingerprint = isOurs(comment as Parameters<typeof isOurs>[0], app) ? MARKER.exec(comment.body)?.[1] : undefined;
    return fingerprint === undefined ? [] : [{ fingerprint, url: comment.html_url, sha: comment.original_commit_id }];
  });
}

/**
 * Which suggestions to post: inside the diff, never a fingerprint twice on a pull request, no overlapping lines, at most three,
 * and nothing when this head commit already has its review.
 */
export function planReview(
  wanted: readonly Suggestion[],
  posted: readonly PostedSuggestion[],
  remembered: readonly string[],
  files: readonly ChangedFile[],
  headSha: string,
): Suggestion[] {
  if (posted.some(({ sha }) => sha === headSha)) return [];
  const taken = new Set([...remembered, ...posted.map(({ fingerprint }) => fingerprint)]);
  const chosen: Suggestion[] = [];
  for (const suggestion of wanted) {
    if (chosen.length >= MAX_SUGGESTIONS) break;
    if (taken.has(suggestion.fingerprint) || taken.has(safeFingerprint(suggestion.fingerprint))) continue;
    if (!isInDiff(files, suggestion.path, suggestion.startLine, suggestion.endLine)) continue;
    const overlaps = chosen.some(
      (other) => other.path === suggestion.path && other.startLine <= suggestion.endLine && suggestion.startLine <= other.endLine,
    );
    if (overlaps) continue;
    taken.add(suggestion.fingerprint);
    chosen.push(suggestion);
  }
  return chosen;
}

/** Posts one review with the chosen suggestions. False: GitHub refused it, for example because the head moved. */
export async function postReview(
  octokit: Octokit,
  repository: RepositoryRef,
  number: number,
  review: { readonly headSha: string; readonly body: string; readonly suggestions: readonly Suggestion[] },
): Promise<boolean> {
  try {
    await octokit.rest.pulls.createReview({
      owner: repository.owner,
      repo: repository.name,
      pull_number: number,
      commit_id: review.headSha,
      event: 'COMMENT',
      body: review.body,
      comments: review.suggestions.map(({ fingerprint, path, startLine, endLine, body }) => ({
        path,
        side: 'RIGHT',
        line: endLine,
        ...(startLine < endLine ? { start_line: startLine, start_side: 'RIGHT' } : {}),
        body: `${body}\n${markerOf(fingerprint)}`,
      })),
      request: { retries: 0 },
    });
    return true;
  } catch (error) {
    if (statusOf(error) === 422 || refusalOf(error) === 'locked') return false;
    throw error;
  }
}
