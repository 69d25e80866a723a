import { DEFAULT_CONFIG } from '../../config/schema.ts';
import { PERMISSIONS, statusOf } from '../../github/client.ts';
import type { CheckAction } from '../../github/intake.ts';
import { createCheck, type DesiredCheck, findCheck, readCheckTitle, restateCheck, updateCheck } from '../../github/publish/check.ts';
import type { Lang } from '../../model/lang.ts';
import { renderCheck } from '../../render/check.ts';
import type { CheckRecord } from '../../store/ports.ts';
import type { Dependencies } from './dependencies.ts';
import type { Target } from './request.ts';

const TEXT = {
  superseded: {
    en: { title: 'Superseded by a newer commit', summary: 'The pull request has moved on; its newest commit has a check of its own.' },
    zh: { title: '已被更新的提交取代', summary: '本 PR 已有更新的提交，最新提交有自己的检查。' },
  },
  closed: {
    en: { title: 'Pull request closed', summary: 'The pull request was closed before a profile arrived.' },
    zh: { title: 'PR 已关闭', summary: '在收到 profile 之前，本 PR 已关闭。' },
  },
  late: {
    en: {
      title: 'No result before the deadline',
      summary: 'The deadline has passed, and looking for a profile has failed each time. `/npu-advise rerun` looks once more.',
    },
    zh: { title: '到期仍无结果', summary: '已过截止时间，且每次查找 profile 均失败。可用 `/npu-advise rerun` 重查。' },
  },
  queue: {
    en: {
      title: 'Nothing to do in the merge queue',
      summary: 'Profiles are looked at on pull requests; the check of the pull request has decided.',
    },
    zh: { title: '合并队列中无需检查', summary: 'profile 在 PR 中检查，结论以 PR 的检查为准。' },
  },
  'queue-gone': {
    en: { title: 'No longer in the merge queue', summary: 'The merge queue has given this commit up or merged it.' },
    zh: { title: '已离开合并队列', summary: '合并队列已放弃或合并了该提交。' },
  },
  'queue-missing': {
    en: {
      title: 'No profile arrived in the merge queue',
      summary: 'No `merge_group` run uploaded a usable profile of this commit in time. The queue is not held up.',
    },
    zh: { title: '合并队列中没有收到 profile', summary: '没有 `merge_group` 运行及时上传该提交的可用 profile。队列不会因此停下。' },
  },
} as const;

/** A check that is concluded without having looked at anything. */
export function plainCheck(kind: keyof typeof TEXT, lang: Lang): DesiredCheck {
  return { status: 'completed', conclusion: 'neutral', ...TEXT[kind][lang], text: '', annotations: [], actions: [] };
}

/** A check that waits for a profile, or whose profile is being read. */
export async function openCheck(deps: Dependencies, place: CheckPlace, lang: Lang, phase: 'waiting' | 'analysing'): Promise<DesiredCheck> {
  const { slug } = await deps.github.identity();
  const comment = { lang, appSlug: slug, pr: place.pr, sha: place.sha, links: { htmlBase: null, report: null }, workflow: null } as const;
  const rendered = renderCheck({ comment: { ...comment, state: 'running', phase }, annotatable: () => false });
  return { ...rendered, status: phase === 'waiting' ? 'queued' : 'in_progress', actions: [] };
}

const BUTTONS: Readonly<Record<CheckAction, Readonly<Record<Lang, { label: string; description: string }>>>> = {
  rerun: {
    en: { label: 'Analyse again', description: 'Look for profiles of this commit again' },
    zh: { label: '重新分析', description: '重新查找该提交的 profile' },
  },
  'ack-all': {
    en: { label: 'Acknowledge all', description: 'Accept what is open until it grows' },
    zh: { label: '全部确认', description: '确认所有待处理结果，直到耗时增长' },
  },
  suggest: {
    en: { label: 'Post suggestions', description: 'Post the changes as review suggestions' },
    zh: { label: '提交修改建议', description: '以评审建议的形式提交代码修改' },
  },
};

/** Buttons of a finished check. */
export function buttons(actions: readonly CheckAction[], lang: Lang): DesiredCheck['actions'] {
  return actions.map((identifier) => ({ ...BUTTONS[identifier][lang], identifier }));
}

export interface CheckPlace {
  readonly target: Target;
  readonly sha: string;
  readonly pr: number;
}

/**
 * The record of our check run on a commit, with the run found or created on GitHub. Holding a lock for the commit, and asking
 * GitHub before creating, makes it one run even when two jobs ask or a process died between the creation and our note of it.
 */
export async function ensureCheck(
  deps: Dependencies,
  place: CheckPlace,
  initial: DesiredCheck,
  deadlineMinutes = DEFAULT_CONFIG.deadline_minutes,
): Promise<CheckRecord & { checkRunId: number }> {
  const { target, sha, pr } = place;
  const { repository, installationId } = target;
  return deps.store.database.exclusively(`check/${repository.id}/${sha}`, async () => {
    const known = await deps.store.checks.find(repository.id, sha);
    if (known !== null && known.checkRunId !== null) return { ...known, checkRunId: known.checkRunId };
    const octokit = await deps.github.client(installationId, repository, PERMISSIONS.publish);
    const app = await deps.github.identity();
    const found = (await findCheck(octokit, repository, sha, app)) ?? (await createCheck(octokit, repository, sha, initial));
    const record = {
      repoId: repository.id,
      owner: repository.owner,
      repo: repository.name,
      sha,
      pr,
      installationId,
      checkRunId: found.id,
      url: found.url,
      phase: found.status === 'completed' ? 'completed' : found.status === 'in_progress' ? 'in_progress' : 'queued',
      conclusion: found.conclusion,
      hasReport: false,
      deadlineAt: known?.deadlineAt ?? deps.now() + deadlineMinutes * 60_000,
    } as const;
    await deps.store.checks.put(record);
    return record;
  });
}

/**
 * Writes a state to the check run of a commit and remembers it. A check that was concluded and is opened again gets a new deadline: the old
 * one has had its look, and a deadline is looked at once.
 */
export async function writeCheck(deps: Dependencies, place: CheckPlace, desired: DesiredCheck, hasReport: boolean): Promise<CheckRecord> {
  const { target } = place;
  let record = await ensureCheck(deps, place, { ...desired, status: 'in_progress' });
  const isReopened = desired.status !== 'completed' && (record.phase === 'completed' || record.deadlineAt === null);
  const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.publish);
  try {
    await updateCheck(octokit, target.repository, record.checkRunId, desired);
  } catch (error) {
    if (statusOf(error) !== 404) throw error;
    // GitHub deletes check runs of a suite that has very many: found or made once more.
    await deps.store.checks.put({ ...record, checkRunId: null });
    record = await ensureCheck(deps, place, { ...desired, status: 'in_progress' });
    await updateCheck(octokit, target.repository, record.checkRunId, desired);
  }
  const next: CheckRecord = {
    ...record,
    phase: desired.status,
    conclusion: desired.status === 'completed' ? desired.conclusion : null,
    hasReport: hasReport || (record.hasReport && desired.status === 'completed'),
    ...(isReopened ? { deadlineAt: deps.now() + DEFAULT_CONFIG.deadline_minutes * 60_000 } : {}),
  };
  await deps.store.checks.put(next);
  return next;
}

/** Whether the check of a commit has failed for what a profile holds. Only a profile of a run takes that back, never an attached one. */
export async function hasFailed(deps: Dependencies, { target, sha }: CheckPlace): Promise<boolean> {
  const known = await deps.store.checks.find(target.repository.id, sha);
  return known?.phase === 'completed' && known.conclusion === 'failure' && known.hasReport;
}

/** A re-run was asked for where nothing is to be done: the check says again what it said, so that nobody waits for it. */
export async function sayAgain(deps: Dependencies, { target, sha }: CheckPlace): Promise<void> {
  const known = await deps.store.checks.find(target.repository.id, sha);
  if (known === null || known.checkRunId === null || known.phase !== 'completed') return;
  const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.publish);
  await restateCheck(octokit, target.repository, known.checkRunId, known.conclusion ?? 'neutral');
}

/**
 * True when a check was concluded without a look at anything, because its pull request was closed or had moved on; or when its run is gone.
 * Other conclusions, "no profile arrived" for one, say what was looked at and stand.
 */
export async function isSetAside(deps: Dependencies, { target }: CheckPlace, checkRunId: number): Promise<boolean> {
  const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.publish);
  try {
    const title = await readCheckTitle(octokit, target.repository, checkRunId);
    return [TEXT.closed, TEXT.superseded].some(({ en, zh }) => title === en.title || title === zh.title);
  } catch (error) {
    if (statusOf(error) === 404) return true;
    throw error;
  }
}

/** Concludes a check that is still open; one that is concluded stays as it is. */
export async function concludeOpenCheck(deps: Dependencies, place: CheckPlace, desired: DesiredCheck): Promise<void> {
  const known = await deps.store.checks.find(place.target.repository.id, place.sha);
  if (known === null || known.phase === 'completed') return;
  await writeCheck(deps, place, desired, known.hasReport);
}
