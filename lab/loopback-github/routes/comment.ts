/** Issue comments and their reactions. */
import { actorOf, bodyText, type Call, found, type Handlers, integer, optionalText, page, pullOf, repositoryOf } from '../call.ts';
import { addComment, editComment, removeComment } from '../comments.ts';
import { commentJson, reactionJson } from '../present/comment.ts';
import { checkAuthor, checkBody, checkUnlocked } from '../rules.ts';
import { type IssueComment, nextId, now, type Repository } from '../state.ts';

function commentOf(call: Call): { repository: Repository; comment: IssueComment } {
  const repository = repositoryOf(call);
  const id = integer(call, 'comment_id');
  return { repository, comment: found(repository.comments.find((comment) => comment.id === id)) };
}

function isLocked(repository: Repository, comment: IssueComment): boolean {
  return repository.pulls.some((pull) => pull.number === comment.number && pull.locked);
}

/** The comments a list shows: all of them, or those of a replica that lags behind. */
function readableComments(repository: Repository): IssueComment[] {
  const stale = repository.staleComments;
  if (!stale || stale.reads <= 0) return repository.comments;
  stale.reads--;
  return stale.comments;
}

/** Handlers of this area. */
export const commentHandlers: Handlers = {
  'issues/list-comments': (call) => {
    const pull = pullOf(call, 'issue_number');
    const since = optionalText(call, 'since');
    const comments = readableComments(pull.repository)
      .filter((comment) => comment.number === pull.number)
      .filter((comment) => since === null || Date.parse(comment.updatedAt) >= Date.parse(since));
    const { items, headers } = page(call, comments);
    return { status: 200, body: items.map((comment) => commentJson(call.state, pull.repository, comment)), headers };
  },

  'issues/get-comment': (call) => {
    const { repository, comment } = commentOf(call);
    return { status: 200, body: commentJson(call.state, repository, comment) };
  },

  'issues/create-comment': (call) => {
    const pull = pullOf(call, 'issue_number');
    const body = bodyText(call.body, 'body') ?? '';
    checkBody(body, 'IssueComment');
    checkUnlocked(pull.locked);
    const comment = addComment(call.state, pull, actorOf(call), body, true);
    const json = commentJson(call.state, pull.repository, comment);
    return { status: 201, body: json, headers: { location: String(json.url) } };
  },

  'issues/update-comment': (call) => {
    const { repository, comment } = commentOf(call);
    const actor = actorOf(call);
    checkAuthor(comment.user === actor);
    const body = bodyText(call.body, 'body') ?? '';
    checkBody(body, 'IssueComment');
    checkUnlocked(isLocked(repository, comment));
    editComment(call.state, repository, comment, body, actor.login);
    return { status: 200, body: commentJson(call.state, repository, comment) };
  },

  'issues/delete-comment': (call) => {
    const { repository, comment } = commentOf(call);
    const actor = actorOf(call);
    checkAuthor(comment.user === actor);
    removeComment(call.state, repository, comment, actor.login);
    return { status: 204 };
  },

  'reactions/list-for-issue-comment': (call) => {
    const { comment } = commentOf(call);
    const content = optionalText(call, 'content');
    const { items, headers } = page(
      call,
      comment.reactions.filter((reaction) => content === null || reaction.content === content),
    );
    return { status: 200, body: items.map((reaction) => reactionJson(call.state, reaction)), headers };
  },

  // `duplicate-reaction`: 200 with the reaction that is already there [spec, reactions/create-for-issue-comment].
  'reactions/create-for-issue-comment': (call) => {
    const { repository, comment } = commentOf(call);
    checkUnlocked(isLocked(repository, comment));
    const user = actorOf(call);
    const content = bodyText(call.body, 'content') ?? '';
    const known = comment.reactions.find((reaction) => reaction.user === user && reaction.content === content);
    if (known) return { status: 200, body: reactionJson(call.state, known) };
    const reaction = { id: nextId(call.state, 'reaction'), user, content, createdAt: now(call.state) };
    comment.reactions.push(reaction);
    return { status: 201, body: reactionJson(call.state, reaction) };
  },

  'reactions/delete-for-issue-comment': (call) => {
    const { comment } = commentOf(call);
    const id = integer(call, 'reaction_id');
    const reaction = found(comment.reactions.find((candidate) => candidate.id === id));
    checkAuthor(reaction.user === actorOf(call));
    comment.reactions = comment.reactions.filter((candidate) => candidate !== reaction);
    return { status: 204 };
  },
};
