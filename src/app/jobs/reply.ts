import { createHash } from 'node:crypto';
import { quoteLiteral } from '../../base/phrase.ts';
import type { AppIdentity, Octokit } from '../../github/client.ts';
import { applyComment, listOwnComments } from '../../github/publish/comment.ts';
import type { Lang } from '../../model/lang.ts';
import type { Dependencies } from './dependencies.ts';
import type { Target } from './request.ts';

/** An answer this near the end of the conversation is brought up to date instead of given a second time. */
const NEAR = 6;

interface Reply {
  readonly pr: number;
  readonly app: AppIdentity;
  readonly commentId: number;
  /** Which command of the comment. */
  readonly place: number | 'limit' | 'failed';
  /** The command with its arguments: the same question again. */
  readonly about: string;
  readonly text: string;
  readonly actor: string;
  readonly lang: Lang;
}

/**
 * Answers a command once, however often its job is tried. Who asks the same again finds the answer that stands just above brought up to
 * date: an edit sends no mail to anybody.
 */
export async function giveReply(deps: Dependencies, octokit: Octokit, { repository }: Target, reply: Reply): Promise<void> {
  const { pr, app, commentId, place, about, text, actor, lang } = reply;
  const first = `<!-- npu-advisor:reply comment=${commentId} command=${place} `;
  const key = `about=${createHash('sha256').update(about).digest('hex').slice(0, 12)} -->`;
  await deps.store.database.exclusively(`reply/${repository.id}/${pr}`, async () => {
    const given = await listOwnComments(octokit, repository, pr, app, '<!-- npu-advisor:reply ');
    if (given.some(({ body }) => body.startsWith(first))) return;
    const before = given.findLast(({ body, after }) => after <= NEAR && (body.split('\n', 1)[0] ?? '').endsWith(key));
    const body = `${first}${key}\n${text}`;
    if (before === undefined) await applyComment(octokit, repository, pr, [{ op: 'create', body }]);
    else {
      const who = quoteLiteral(actor, 60);
      const note = lang === 'en' ? `Brought up to date, asked by ${who}.` : `已应 ${who} 的请求更新。`;
      await applyComment(octokit, repository, pr, [{ op: 'update', id: before.id, body: `${body}\n\n<sub>${note}</sub>` }]);
    }
  });
}
