/** Comments and reactions as the API shows them. */
import type { JsonObject } from '../json.ts';
import type { HubState, IssueComment, Reaction, Repository } from '../state.ts';
import { accountJson, appJson, nodeId } from './account.ts';
import { association, rollup } from './pull.ts';
import { repositoryApi, repositoryHtml } from './repository.ts';

/** A comment of the conversation. */
export function commentJson(state: HubState, repository: Repository, comment: IssueComment): JsonObject {
  const api = repositoryApi(state, repository);
  const self = `${api}/issues/comments/${comment.id}`;
  return {
    url: self,
    html_url: `${repositoryHtml(state, repository)}/pull/${comment.number}#issuecomment-${comment.id}`,
    issue_url: `${api}/issues/${comment.number}`,
    id: comment.id,
    node_id: nodeId('IC', comment.id),
    user: accountJson(state, comment.user),
    created_at: comment.createdAt,
    updated_at: comment.updatedAt,
    body: comment.body,
    author_association: association(repository, comment.user),
    reactions: rollup(
      `${self}/reactions`,
      comment.reactions.map((reaction) => reaction.content),
    ),
    performed_via_github_app: comment.viaApp ? appJson(state) : null,
  };
}

/** A reaction. */
export function reactionJson(state: HubState, reaction: Reaction): JsonObject {
  return {
    id: reaction.id,
    node_id: nodeId('REA', reaction.id),
    user: accountJson(state, reaction.user),
    content: reaction.content,
    created_at: reaction.createdAt,
  };
}
