import type { DesiredCheck } from '../../github/publish/check.ts';
import type { Lang } from '../../model/lang.ts';
import { plain } from '../../render/escape.ts';
import type { CheckRecord } from '../../store/ports.ts';

/*
 * GitHub has one check run for a name and a commit, and a commit may be the head of several pull requests. Each of them has its own base,
 * settings and gate; the check run shows the worst of them, so that a green check never stands where one of them is not.
 */

/** What one pull request has its check say. */
export interface Share {
  readonly pr: number;
  readonly said: DesiredCheck;
}

/** Worst first. A failure is known at once; nothing passes while another pull request is still waited for. */
const ORDER = ['failure', 'action_required', 'timed_out', 'cancelled', 'in_progress', 'queued', 'neutral', 'skipped', 'success'];

function rankOf({ said: { status, conclusion } }: Share): number {
  const place = ORDER.indexOf(status === 'completed' ? (conclusion ?? 'neutral') : status);
  return place < 0 ? ORDER.length : place;
}

/** The share that the check run shows: the worst, of several the one that tells most. */
export function worstOf(shares: readonly Share[]): Share | null {
  const weight = ({ said: { annotations, text } }: Share): number => annotations.length + (text === '' ? 0 : 1);
  return [...shares].sort((a, b) => rankOf(a) - rankOf(b) || weight(b) - weight(a) || a.pr - b.pr)[0] ?? null;
}

/** Reads what a share says. A version of before has not noted it; then only its conclusion is known. */
export function shareOf({ pr, phase, conclusion, said }: CheckRecord): Share {
  if (said !== undefined) return { pr, said: JSON.parse(said) as DesiredCheck };
  const title = conclusion === null ? phase : conclusion;
  const common = { title, summary: '`/npu-advise rerun`', text: '', annotations: [], actions: [] };
  return { pr, said: { ...common, status: phase, conclusion: conclusion as DesiredCheck['conclusion'] } };
}

/** The check run of a commit. Where its pull requests differ, it names each of them and how it stands. */
export function combine(shares: readonly Share[]): DesiredCheck | null {
  const worst = worstOf(shares);
  if (worst === null) return null;
  const lang: Lang = worst.said.lang ?? 'en';
  const differs = shares.some(({ said: { status, conclusion, title } }) => {
    return status !== worst.said.status || conclusion !== worst.said.conclusion || title !== worst.said.title;
  });
  if (!differs) return worst.said;
  const lines = [...shares]
    .sort((a, b) => a.pr - b.pr)
    .map(({ pr, said: { status, conclusion, title } }) => {
      const how = status === 'completed' ? `\`${conclusion ?? 'neutral'}\`, ` : '';
      return `- #${pr}: ${how}${plain(title, 200)}${pr === worst.pr ? ` (${lang === 'en' ? 'shown here' : '此处所示'})` : ''}`;
    });
  const intro =
    lang === 'en'
      ? 'This commit is the head of several pull requests, and GitHub has one check for them all. It shows the worst; each pull request has a comment of its own.'
      : '该提交同时是多个 PR 的最新提交，GitHub 上它们共用一个检查。此处显示最差的结论；各 PR 有各自的评论。';
  return { ...worst.said, summary: `${intro}\n\n${lines.join('\n')}\n\n${worst.said.summary}` };
}
