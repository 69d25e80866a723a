import { DEFAULT_CONFIG } from '../../config/schema.ts';
import { PERMISSIONS, statusOf } from '../../github/client.ts';
import type { CheckAction } from '../../github/intake.ts';
import { createCheck, type DesiredCheck, findCheck, readCheckTitle, restateCheck, updateCheck } from '../../github/publish/check.ts';
import { readPullRequest } from '../../github/pull-requests.ts';
import type { Lang } from '../../model/lang.ts';
import { renderCheck } from '../../render/check.ts';
import type { CheckPhase, CheckRecord } from '../../store/ports.ts';
import type { Dependencies } from './dependencies.ts';
import type { Target } from './request.ts';
import { combine, shareOf } from './shared-check.ts';

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
  return { status: 'completed', conclusion: 'neutral', ...TEXT[kind][lang], text: '', annotations: [], actions: [], lang };
}

/** A check that waits for a profile, or whose profile is being read. */
export async function openCheck(deps: Dependencies, place: CheckPlace, lang: Lang, phase: 'waiting' | 'analysing'): Promise<DesiredCheck> {
  const { slug } = await deps.github.identity();
  const comment = { lang, appSlug: slug, pr: place.pr, sha: place.sha, links: { htmlBase: null, report: null }, workflow: null } as const;
  const rendered = renderCheck({ comment: { ...comment, state: 'running', phase }, annotatable: () => false });
  return { ...rendered, status: phase === 'waiting' ? 'queued' : 'in_progress', actions: [], lang };
}

const BUTTONS: Readonly<Record<CheckAction, Readonly<Record<Lang, { label: string; description: string }>>>> = {
  rerun: {
    en: { label: 'Analyse again', description: 'Look for profiles of this commit again' },
    zh: { label: '重新分析', description: '重新查找该提交的 profile' },
  },
  'ack-all': {
    en: { label: 'Acknowledge all', description: 'Accept what is open until it grows' },
    zh: { label: '全部确认', description: '确认所有待处理的原因，直到耗时增长' },
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

/** What happens to the check run of a commit happens one after the other: several pull requests may have that head. */
function holding<T>(deps: Dependencies, { target, sha }: CheckPlace, body: () => Promise<T>): Promise<T> {
  return deps.store.database.exclusively(`check/${target.repository.id}/${sha}`, body);
}

/**
 * The part of a pull request in the check run of a commit, with the run found or created on GitHub. Holding a lock for the commit, and asking
 * GitHub before creating, makes it one run even when two jobs ask or a process died between the creation and our note of it.
 */
export async function ensureCheck(
  deps: Dependencies,
  place: CheckPlace,
  initial: DesiredCheck,
  deadlineMinutes = DEFAULT_CONFIG.deadline_minutes,
): Promise<CheckRecord & { checkRunId: number }> {
  return holding(deps, place, () => ensureHeld(deps, place, initial, deadlineMinutes));
}

async function ensureHeld(
  deps: Dependencies,
  place: CheckPlace,
  initial: DesiredCheck,
  deadlineMinutes = DEFAULT_CONFIG.deadline_minutes,
): Promise<CheckRecord & { checkRunId: number }> {
  const { target, sha, pr } = place;
  const { repository, installationId } = target;
  const { checks } = deps.store;
  const all = await checks.ofCommit(repository.id, sha);
  const known = all.find((one) => one.pr === pr);
  if (known !== undefined && known.checkRunId !== null) return { ...known, checkRunId: known.checkRunId };
  const octokit = await deps.github.client(installationId, repository, PERMISSIONS.publish);
  const common = { repoId: repository.id, owner: repository.owner, repo: repository.name, sha, pr, installationId };
  const deadlineAt = known?.deadlineAt ?? deps.now() + deadlineMinutes * 60_000;
  const other = all.find(({ checkRunId }) => checkRunId !== null);
  if (other !== undefined && other.checkRunId !== null) {
    // Another pull request has this head, too: its run is ours, and from now on waits for both.
    const { checkRunId, url } = other;
    const waiting: DesiredCheck = { ...initial, status: 'queued', conclusion: null };
    const record = { ...common, checkRunId, url, phase: 'queued', conclusion: null, hasReport: false, deadlineAt } as const;
    const noted = { ...record, said: JSON.stringify(waiting) };
    await checks.put(noted);
    const shown = combine([{ pr, said: waiting }, ...(await others(deps, place)).map(shareOf)]);
    if (shown !== null) await updateCheck(octokit, repository, checkRunId, shown).catch(unlessGone);
    return noted;
  }
  const app = await deps.github.identity();
  const found = (await findCheck(octokit, repository, sha, app)) ?? (await createCheck(octokit, repository, sha, initial));
  const record = {
    ...common,
    checkRunId: found.id,
    url: found.url,
    phase: found.status === 'completed' ? 'completed' : found.status === 'in_progress' ? 'in_progress' : 'queued',
    conclusion: found.conclusion,
    hasReport: false,
    deadlineAt,
  } as const;
  // What another process has written there is known to nobody but GitHub.
  const noted = found.status === 'queued' ? { ...record, said: JSON.stringify({ ...initial, status: 'queued' }) } : record;
  await checks.put(noted);
  return noted;
}

/** GitHub deletes check runs of a suite that has very many; whoever writes next makes another. */
function unlessGone(error: unknown): void {
  if (statusOf(error) !== 404) throw error;
}

/**
 * The other pull requests that have a part in the check run. One that was closed or has moved on meanwhile has none any more, whether or not
 * we were told.
 */
async function others(deps: Dependencies, { target, sha, pr }: CheckPlace): Promise<CheckRecord[]> {
  const { repository, installationId } = target;
  const found = (await deps.store.checks.ofCommit(repository.id, sha)).filter((one) => one.pr !== pr);
  if (found.length === 0) return [];
  const octokit = await deps.github.client(installationId, repository, PERMISSIONS.publish);
  const living: CheckRecord[] = [];
  for (const one of found) {
    const pull = await readPullRequest(octokit, repository, one.pr);
    if (pull?.state === 'open' && pull.headSha === sha) living.push(one);
    else await deps.store.checks.drop(repository.id, sha, one.pr);
  }
  return living;
}

/**
 * Has the check run say a state for a pull request, and remembers it; where other pull requests have the same head, the run shows the worst of
 * them all. A check that was concluded and is opened again gets a new deadline: the old one has had its look, and a deadline is looked at once.
 * `phase`: where the work stands, if that is not what GitHub is told.
 */
export async function writeCheck(
  deps: Dependencies,
  place: CheckPlace,
  desired: DesiredCheck,
  hasReport: boolean,
  phase: CheckPhase = desired.status,
): Promise<CheckRecord> {
  return holding(deps, place, () => writeHeld(deps, place, desired, hasReport, phase));
}

async function writeHeld(
  deps: Dependencies,
  place: CheckPlace,
  desired: DesiredCheck,
  hasReport: boolean,
  phase: CheckPhase = desired.status,
): Promise<CheckRecord> {
  const { target, pr } = place;
  const initial: DesiredCheck = { ...desired, status: 'in_progress' };
  let record = await ensureHeld(deps, place, initial);
  const isReopened = phase !== 'completed' && (record.phase === 'completed' || record.deadlineAt === null);
  const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.publish);
  const shown = combine([{ pr, said: desired }, ...(await others(deps, place)).map(shareOf)]) ?? desired;
  try {
    await updateCheck(octokit, target.repository, record.checkRunId, shown);
  } catch (error) {
    unlessGone(error);
    await deps.store.checks.put({ ...record, checkRunId: null });
    record = await ensureHeld(deps, place, initial);
    await updateCheck(octokit, target.repository, record.checkRunId, shown);
  }
  const { dueAt: _, ...known } = record;
  const next: CheckRecord = {
    ...(phase === 'completed' || isReopened ? known : record),
    phase,
    conclusion: phase === 'completed' ? desired.conclusion : null,
    hasReport: hasReport || (record.hasReport && phase === 'completed'),
    ...(isReopened ? { deadlineAt: deps.now() + DEFAULT_CONFIG.deadline_minutes * 60_000 } : {}),
    said: JSON.stringify(desired),
  };
  await deps.store.checks.put(next);
  return next;
}

/** Whether the check of a pull request has failed for what a profile holds. Only a profile of a run takes that back, never an attached one. */
export async function hasFailed(deps: Dependencies, { target, sha, pr }: CheckPlace): Promise<boolean> {
  const known = await deps.store.checks.find(target.repository.id, sha, pr);
  return known?.phase === 'completed' && known.conclusion === 'failure' && known.hasReport;
}

/** A re-run was asked for where nothing is to be done: the check says again what it said, so that nobody waits for it. */
export async function sayAgain(deps: Dependencies, { target, sha }: Omit<CheckPlace, 'pr'>): Promise<void> {
  const all = await deps.store.checks.ofCommit(target.repository.id, sha);
  const shown = combine(all.map(shareOf));
  const run = all.find(({ checkRunId }) => checkRunId !== null);
  if (shown?.status !== 'completed' || run === undefined || run.checkRunId === null) return;
  const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.publish);
  await restateCheck(octokit, target.repository, run.checkRunId, shown.conclusion ?? 'neutral');
}

/**
 * True when a check was concluded without a look at anything, because its pull request was closed or had moved on; or when its run is gone.
 * Other conclusions, "no profile arrived" for one, say what was looked at and stand.
 */
export async function isSetAside(
  deps: Dependencies,
  { target }: CheckPlace,
  { checkRunId, said }: CheckRecord & { checkRunId: number },
): Promise<boolean> {
  const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.publish);
  try {
    const read = await readCheckTitle(octokit, target.repository, checkRunId);
    // What the run shows may be another pull request's.
    const title = said === undefined ? read : (JSON.parse(said) as DesiredCheck).title;
    return [TEXT.closed, TEXT.superseded].some(({ en, zh }) => title === en.title || title === zh.title);
  } catch (error) {
    if (statusOf(error) === 404) return true;
    throw error;
  }
}

/** Concludes a check that is still open; one that is concluded stays as it is. */
export async function concludeOpenCheck(deps: Dependencies, place: CheckPlace, desired: DesiredCheck): Promise<void> {
  await holding(deps, place, async () => {
    const known = await deps.store.checks.find(place.target.repository.id, place.sha, place.pr);
    if (known === null || known.phase === 'completed') return;
    await writeHeld(deps, place, desired, known.hasReport);
  });
}

/**
 * A pull request is closed, or its head is another commit: its part leaves the check run, which then shows the others that have this head.
 * Alone it concludes what is still open and leaves what is concluded as it is.
 */
export async function withdraw(deps: Dependencies, place: CheckPlace, kind: 'closed' | 'superseded', lang: Lang = 'en'): Promise<void> {
  const { target, sha, pr } = place;
  await holding(deps, place, async () => {
    const known = await deps.store.checks.find(target.repository.id, sha, pr);
    if (known === null) return;
    const left = await others(deps, place);
    if (left.length === 0) {
      if (known.phase !== 'completed') await writeHeld(deps, place, plainCheck(kind, lang), known.hasReport);
      return;
    }
    await deps.store.checks.drop(target.repository.id, sha, pr);
    const shown = combine(left.map(shareOf));
    if (shown === null || known.checkRunId === null) return;
    const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.publish);
    await updateCheck(octokit, target.repository, known.checkRunId, shown).catch(unlessGone);
  });
}
