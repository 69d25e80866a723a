import { type Config, DEFAULT_CONFIG } from '../../config/schema.ts';
import { PERMISSIONS } from '../../github/client.ts';
import type { Task } from '../../github/intake.ts';
import type { DesiredCheck } from '../../github/publish/check.ts';
import { readPullRequest } from '../../github/pull-requests.ts';
import type { Lang } from '../../model/lang.ts';
import type { CheckRecord } from '../../store/ports.ts';
import { concludeOpenCheck, ensureCheck, openCheck, plainCheck, writeCheck } from './check-run.ts';
import type { Dependencies } from './dependencies.ts';
import { readSettings } from './settings.ts';

const QUEUE_REF = /^(?:refs\/heads\/)?gh-readonly-queue\/(.+)\/pr-(\d{1,9})-[0-9a-f]{40}$/;

/** What the name of a merge queue's branch tells: its base branch, and the last pull request of the group. null: not of a queue. */
export function readQueueRef(ref: string | null): { readonly base: string; readonly pr: number } | null {
  const match = ref === null ? null : QUEUE_REF.exec(ref);
  return match === null ? null : { base: match[1]!, pr: Number(match[2]) };
}

/** GitHub takes a group out of the queue whose checks have not answered after an hour, unless the branch rules say otherwise. */
const QUEUE_DEADLINE_MINUTES = 50;

/** Minutes a queue's check waits for a profile: what a settings file says, else less than a pull request's. */
export function queueDeadline({ deadline_minutes: minutes }: Pick<Config, 'deadline_minutes'>, isSaid: boolean): number {
  return isSaid ? minutes : QUEUE_DEADLINE_MINUTES;
}

/** Checks of a merge queue's commits belong to no pull request. */
export const QUEUE_PR = 0;

/**
 * A merge queue tests a commit of its own, and one required check that never comes stops everybody. Unless the settings want a profile of
 * that commit, it is concluded at once with what the pull request's own check found; it never fails there.
 */
export async function handleMergeGroup(deps: Dependencies, task: Extract<Task, { kind: 'merge-group' }>): Promise<void> {
  const { installationId, repository, headSha } = task;
  const target = { installationId, repository };
  const place = { target, sha: headSha, pr: QUEUE_PR };
  const queue = readQueueRef(task.headRef);
  const base = task.baseRef?.replace(/^refs\/heads\//, '') ?? queue?.base ?? null;
  if (task.isGone) return concludeOpenCheck(deps, place, plainCheck('queue-gone', 'en'));

  const settings = base === null ? null : await readSettings(deps, target, base);
  const config = settings?.ok === true ? settings.value : DEFAULT_CONFIG;
  if (config.merge_queue === 'profile') {
    const isSaid = settings?.ok === true && settings.keys.has('deadline_minutes');
    await ensureCheck(deps, place, await openCheck(deps, place, config.lang, 'waiting'), queueDeadline(config, isSaid));
    return;
  }
  let verdict: CheckRecord | null = null;
  if (queue !== null) {
    const octokit = await deps.github.client(installationId, repository, PERMISSIONS.read);
    const pull = await readPullRequest(octokit, repository, queue.pr);
    verdict = pull === null ? null : await deps.store.checks.find(repository.id, pull.headSha, pull.number);
  }
  await writeCheck(deps, place, queueCheck(queue?.pr ?? null, verdict, config.lang), false);
}

/** The check of the queue's commit: what the pull request's check said, failed ones aside. */
export function queueCheck(pr: number | null, verdict: Pick<CheckRecord, 'phase' | 'conclusion'> | null, lang: Lang): DesiredCheck {
  const plain = plainCheck('queue', lang);
  if (pr === null || verdict === null) return plain;
  const { phase, conclusion } = verdict;
  const en =
    phase !== 'completed'
      ? `The check of #${pr} has no conclusion yet; the queue does not wait for it.`
      : `The check of #${pr} ended with \`${conclusion}\`.`;
  const zh = phase !== 'completed' ? `#${pr} 的检查尚无结论；队列不等待它。` : `#${pr} 的检查结论为 \`${conclusion}\`。`;
  const summary = `${plain.summary}\n\n${lang === 'en' ? en : zh}`;
  return { ...plain, conclusion: phase === 'completed' && conclusion === 'success' ? 'success' : 'neutral', summary };
}
