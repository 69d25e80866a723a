import { type Octokit, type RepositoryRef, refusalOf, statusOf } from './client.ts';

/** What a person may do in a repository, asked for at the moment it matters. Unknown people may nothing. */
export async function permissionOf(
  octokit: Octokit,
  repository: RepositoryRef,
  login: string,
): Promise<'admin' | 'write' | 'read' | 'none'> {
  try {
    const { data } = await octokit.rest.repos.getCollaboratorPermissionLevel({
      owner: repository.owner,
      repo: repository.name,
      username: login,
    });
    const permission = data.permission;
    return permission === 'admin' || permission === 'write' || permission === 'read' ? permission : 'none';
  } catch (error) {
    if (statusOf(error) === 404) return 'none';
    throw error;
  }
}

export type Reaction = 'eyes' | '+1' | 'confused';

/**
 * Reacts to a comment; GitHub ignores a reaction that is already there. A comment that is gone, or locked, needs none, and a server that
 * wants another permission for it (GitHub's table lists reactions under Issues only) is not a reason to leave the command undone.
 */
export async function react(octokit: Octokit, repository: RepositoryRef, commentId: number, content: Reaction): Promise<void> {
  try {
    await octokit.rest.reactions.createForIssueComment({ owner: repository.owner, repo: repository.name, comment_id: commentId, content });
  } catch (error) {
    const refusal = refusalOf(error);
    if (statusOf(error) !== 404 && refusal !== 'locked' && refusal !== 'right') throw error;
  }
}
