/** Changes to the conversation of a pull request, made through the API or by a person. */
import { emit } from './deliveries.ts';
import { type Account, type HubState, type IssueComment, nextId, now, type PullRequest, type Repository } from './state.ts';

/** Adds a comment. */
export function addComment(state: HubState, pull: PullRequest, user: Account, body: string, viaApp: boolean): IssueComment {
  const { repository } = pull;
  const at = now(state);
  const comment: IssueComment = {
    id: nextId(state, 'comment'),
    number: pull.number,
    user,
    body,
    viaApp,
    createdAt: at,
    updatedAt: at,
    reactions: [],
  };
  repository.comments.push(comment);
  pull.updatedAt = at;
  emit(state, { event: 'issue_comment', action: 'created', repository, comment }, user.login);
  return comment;
}

/** Changes the text of a comment. */
export function editComment(state: HubState, repository: Repository, comment: IssueComment, body: string, editor: string): void {
  const previousBody = comment.body;
  comment.body = body;
  comment.updatedAt = now(state);
  emit(state, { event: 'issue_comment', action: 'edited', repository, comment, previousBody }, editor);
}

/** Removes a comment. */
export function removeComment(state: HubState, repository: Repository, comment: IssueComment, by: string): void {
  repository.comments = repository.comments.filter((candidate) => candidate !== comment);
  emit(state, { event: 'issue_comment', action: 'deleted', repository, comment }, by);
}
