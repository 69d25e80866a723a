import type { Octokit, RepositoryRef } from '../../github/client.ts';
import { applyComment, planComment } from '../../github/publish/comment.ts';

export interface SteppedComment {
  readonly body: string;
  readonly mayCreate: boolean;
  /** First line, by which it is found again. */
  readonly marker: string;
  /** The token is a person's, not that of a run or an app. */
  readonly isPersonal: boolean;
}

/**
 * Brings the comment of a workflow to the present state. A token of a run does not say whose it is, so a comment is ours when it begins with
 * our line and was written by a bot, which no stranger can be; with a person's token, by that person.
 */
export async function placeComment(
  octokit: Octokit,
  repository: RepositoryRef,
  number: number,
  { body, mayCreate, marker, isPersonal }: SteppedComment,
): Promise<void> {
  const existing: { id: number; body: string; url: string }[] = [];
  const person = isPersonal ? (await octokit.rest.users.getAuthenticated()).data.login : null;
  const pages = octokit.paginate.iterator(octokit.rest.issues.listComments, {
    owner: repository.owner,
    repo: repository.name,
    issue_number: number,
    per_page: 100,
  });
  for await (const { data } of pages) {
    for (const { id, user, body: text = '', html_url: url } of data) {
      const isOurs = person === null ? user?.type === 'Bot' : user?.login === person;
      if (isOurs && text.startsWith(`${marker}\n`)) existing.push({ id, body: text, url });
    }
  }
  await applyComment(octokit, repository, number, planComment({ body, mayCreate }, existing, null));
}
