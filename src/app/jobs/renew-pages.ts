import { PERMISSIONS } from '../../github/client.ts';
import type { DesiredCheck } from '../../github/publish/check.ts';
import { applyComment, COMMENT_MARKER, hashBody, listOwnComments } from '../../github/publish/comment.ts';
import { readPullRequest } from '../../github/pull-requests.ts';
import { writeCheck } from './check-run.ts';
import type { Dependencies } from './dependencies.ts';
import type { Target } from './request.ts';

/**
 * Links to the pages of several jobs end later, in comment and check alike. Their text stays as it is: what it was made of may be gone by
 * now.
 */
export async function renewPages(deps: Dependencies, target: Target, pr: number, sha: string): Promise<void> {
  const { repository, installationId } = target;
  const { links, store } = deps;
  if (links === null) return;
  const octokit = await deps.github.client(installationId, repository, PERMISSIONS.publish);
  const pull = await readPullRequest(octokit, repository, pr);
  if (pull?.state !== 'open' || pull.headSha !== sha) return;
  const pages = await store.pages.ofCommit(repository.id, pr, sha);
  const expiresAt = deps.now() + links.lifetimeMs;
  const renewed = (text: string): string => pages.reduce((said, page) => links.renewIn(said, repository.id, page, expiresAt), text);

  await store.database.exclusively(`comment/${repository.id}/${pr}`, async () => {
    const state = await store.pullRequests.find(repository.id, pr);
    if (state === null || state.commentId === null) return;
    const app = await deps.github.identity();
    const comments = await listOwnComments(octokit, repository, pr, app, COMMENT_MARKER);
    const comment = comments.find(({ id }) => id === state.commentId);
    const body = comment === undefined ? '' : renewed(comment.body);
    if (comment === undefined || body === comment.body) return;
    const standing = await applyComment(octokit, repository, pr, [{ op: 'update', id: comment.id, body }]);
    await store.pullRequests.put({ ...state, bodyHash: standing?.isCurrent === true ? hashBody(body) : null });
  });
  const check = await store.checks.find(repository.id, sha, pr);
  if (check?.said !== undefined && check.phase === 'completed') {
    const said = renewed(check.said);
    if (said !== check.said) await writeCheck(deps, { target, sha, pr }, JSON.parse(said) as DesiredCheck, check.hasReport);
  }
  // Last: until the new links are written, the old ones decide when to try again.
  for (const page of pages) await store.pages.extend(repository.id, page, expiresAt);
}
