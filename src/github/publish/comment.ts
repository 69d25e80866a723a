import { createHash } from 'node:crypto';
import { type AppIdentity, type Octokit, type RepositoryRef, refusalOf, statusOf } from '../client.ts';

/** First bytes of every sticky comment. The marker alone proves nothing: anyone can write it, so the author is checked too. */
export const COMMENT_MARKER = '<!-- npu-advisor:v1 ';

/** A comment of ours that carries the marker. */
export interface OwnComment {
  readonly id: number;
  readonly body: string;
  readonly url: string;
  /** How many comments, of anybody, came after it. */
  readonly after: number;
  /** When it was written last, by GitHub's clock; null: not told. */
  readonly at: number | null;
}

export interface DesiredComment {
  readonly body: string;
  /** False: only edit a comment that exists. */
  readonly mayCreate: boolean;
}

export type CommentOperation =
  | { readonly op: 'create'; readonly body: string }
  | { readonly op: 'update'; readonly id: number; readonly body: string }
  | { readonly op: 'keep'; readonly id: number }
  | { readonly op: 'delete'; readonly id: number };

export function hashBody(body: string): string {
  return createHash('sha256').update(body).digest('hex');
}

/**
 * What must happen so that exactly one comment with the desired body exists. Of several the oldest stays. `posted` is what we
 * remember to have written; GitHub may normalise a body, so an equal hash counts as equal.
 */
export function planComment(
  desired: DesiredComment,
  existing: readonly Pick<OwnComment, 'id' | 'body'>[],
  posted: { id: number; hash: string } | null,
): CommentOperation[] {
  const [keep, ...surplus] = [...existing].sort((a, b) => a.id - b.id);
  const deletions = surplus.map(({ id }): CommentOperation => ({ op: 'delete', id }));
  if (keep === undefined) return desired.mayCreate ? [{ op: 'create', body: desired.body }] : [];
  const isSame = keep.body === desired.body || (posted?.id === keep.id && posted.hash === hashBody(desired.body));
  return [isSame ? { op: 'keep', id: keep.id } : { op: 'update', id: keep.id, body: desired.body }, ...deletions];
}

/** True for comments written by this app. */
export function isOurs(
  author: { user?: { login?: string } | null; performed_via_github_app?: { id?: number } | null },
  app: AppIdentity,
): boolean {
  if (author.performed_via_github_app?.id === app.id) return true;
  return author.user?.login?.toLowerCase() === `${app.slug}[bot]`.toLowerCase();
}

function timeOf(text: string | undefined): number | null {
  const at = Date.parse(text ?? '');
  return Number.isFinite(at) ? at : null;
}

/** All comments of ours that begin with `marker`, oldest first. */
export async function listOwnComments(
  octokit: Octokit,
  repository: RepositoryRef,
  number: number,
  app: AppIdentity,
  marker: string,
): Promise<OwnComment[]> {
  const own: Omit<OwnComment, 'after'>[] = [];
  const place = new Map<number, number>();
  let count = 0;
  const pages = octokit.paginate.iterator(octokit.rest.issues.listComments, {
    owner: repository.owner,
    repo: repository.name,
    issue_number: number,
    per_page: 100,
  });
  for await (const { data } of pages) {
    for (const comment of data) {
      place.set(comment.id, count++);
      if (!isOurs(comment, app) || !(comment.body ?? '').startsWith(marker)) continue;
      own.push({ id: comment.id, body: comment.body ?? '', url: comment.html_url, at: timeOf(comment.updated_at) });
    }
  }
  return own.map((one) => ({ ...one, after: count - 1 - place.get(one.id)! })).sort((a, b) => a.id - b.id);
}

/** Somebody deleted a comment between our look and our edit: whoever tries again finds what is there now. */
export class CommentGone extends Error {
  constructor(options: ErrorOptions) {
    super('the comment was deleted a moment ago', options);
    this.name = 'CommentGone';
  }
}

/** In a locked conversation an app writes nothing; what there is to say stands in the check. */
function unlessLocked(error: unknown): null {
  if (refusalOf(error) === 'locked') return null;
  throw error;
}

/** A comment that stands; `at`: when GitHub's clock says it was written, null where nothing was. */
interface StandingComment {
  readonly id: number;
  readonly url: string | null;
  readonly at: number | null;
  /** False: the conversation is locked, and it says what it said before. */
  readonly isCurrent: boolean;
}

/** Carries the operations out and returns the comment that stands. */
export async function applyComment(
  octokit: Octokit,
  repository: RepositoryRef,
  number: number,
  operations: readonly CommentOperation[],
): Promise<StandingComment | null> {
  const where = { owner: repository.owner, repo: repository.name };
  let standing: StandingComment | null = null;
  for (const operation of operations) {
    switch (operation.op) {
      case 'create': {
        // Never sent twice: when the answer is lost the next attempt finds the comment instead.
        const created = await octokit.rest.issues
          .createComment({ ...where, issue_number: number, body: operation.body, request: { retries: 0 } })
          .catch(unlessLocked);
        standing =
          created === null
            ? null
            : { id: created.data.id, url: created.data.html_url, at: timeOf(created.data.updated_at), isCurrent: true };
        break;
      }
      case 'update': {
        const updated = await octokit.rest.issues
          .updateComment({ ...where, comment_id: operation.id, body: operation.body })
          .catch((error: unknown) => {
            if (statusOf(error) === 404) throw new CommentGone({ cause: error });
            return unlessLocked(error);
          });
        const isCurrent = updated !== null;
        standing = { id: operation.id, url: updated?.data.html_url ?? null, at: timeOf(updated?.data.updated_at), isCurrent };
        break;
      }
      case 'keep':
        standing = { id: operation.id, url: null, at: null, isCurrent: true };
        break;
      case 'delete':
        await octokit.rest.issues.deleteComment({ ...where, comment_id: operation.id }).catch((error: unknown) => {
          if (statusOf(error) !== 404) unlessLocked(error);
        });
        break;
    }
  }
  return standing;
}
