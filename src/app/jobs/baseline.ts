import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { quoteLiteral } from '../../base/phrase.ts';
import { ancestorsOf, mergeBaseOf } from '../../github/ancestors.ts';
import type { Octokit, RepositoryRef } from '../../github/client.ts';
import { FACTS_SCHEMA } from '../../model/facts-schema.ts';
import type { BaseCommit, NoBaseline, ProfileMetrics, Trend } from '../../model/history.ts';
import type { L10n, Lang } from '../../model/lang.ts';
import type { Report } from '../../model/report.ts';
import { profileMetrics } from '../../report/profile-metrics.ts';
import type { KeptProfile, Profiles } from '../../store/ports.ts';
import { readQueueRef } from './merge-queue.ts';

/** Commits before the merge base that are looked at; older profiles are of another program. */
const MAX_ANCESTORS = 300;
/** Runs of one commit that are compared with, newest first: they tell how far unchanged runs differ. */
const MAX_RUNS = 5;
const TREND_POINTS = 30;

/** Profiles to compare with. */
export interface Baseline {
  readonly commit: BaseCommit;
  readonly runs: readonly KeptProfile[];
}

export type BaselineSearch = { readonly baseline: Baseline } | { readonly none: NoBaseline };

/** Where a commit is compared: in a job of a repository, against a branch. */
export interface Comparing {
  readonly repository: RepositoryRef;
  readonly job: string;
  readonly baseRef: string;
  readonly headSha: string;
}

/** The ancestry that is asked for, page by page and only as far as needed. */
export interface Ancestry {
  mergeBase(): Promise<string | null>;
  ancestors(of: string): AsyncIterable<readonly string[]>;
}

/** The ancestry as GitHub has it. */
export function ancestryOf(octokit: Octokit, { repository, baseRef, headSha }: Comparing): Ancestry {
  return {
    mergeBase: () => mergeBaseOf(octokit, repository, baseRef, headSha),
    ancestors: (sha) => ancestorsOf(octokit, repository, sha, MAX_ANCESTORS),
  };
}

/**
 * The nearest commit with a profile that both the change and its base branch have in their history: the merge base, else the first before
 * it. Never a commit that came after, whose changes are not part of this one, and never what a fork's workflow has uploaded.
 */
export async function findBaseline(
  profiles: Pick<Profiles, 'ofCommits' | 'list'>,
  ancestry: Ancestry,
  { repository, job, baseRef, headSha }: Comparing,
  now: number,
): Promise<BaselineSearch> {
  const none = (reason: NoBaseline['reason']): BaselineSearch => ({ none: { branch: baseRef, reason } });
  // Most repositories keep no profiles of their branches; then GitHub need not be asked.
  if ((await profiles.list({ repoId: repository.id, job, after: 0, limit: 1 })).length === 0) return none('no-profile');
  const mergeBase = await ancestry.mergeBase();
  if (mergeBase === null) return none('unrelated');

  let isOther = false;
  const among = async (shas: readonly string[]): Promise<readonly KeptProfile[]> => {
    const found = (await profiles.ofCommits(repository.id, job, shas)).filter(({ factsSchema }) => factsSchema !== null);
    const usable = found.filter(({ factsSchema }) => factsSchema === FACTS_SCHEMA);
    isOther ||= usable.length < found.length;
    const [sha] = shas.filter((one) => usable.some((profile) => profile.sha === one));
    return usable.filter((profile) => profile.sha === sha).slice(0, MAX_RUNS);
  };
  const chosen = (runs: readonly KeptProfile[], commitsBefore: number): BaselineSearch => {
    const { sha, branch, recordedAt } = runs[0]!;
    const commit = { sha, branch, baseRef, mergeBase, isFallback: sha !== mergeBase, commitsBefore, ageMs: Math.max(0, now - recordedAt) };
    return { baseline: { commit, runs } };
  };

  if (mergeBase !== headSha) {
    const exact = await among([mergeBase]);
    if (exact.length > 0) return chosen(exact, 0);
  }
  let before = 0;
  for await (const page of ancestry.ancestors(mergeBase)) {
    const others = page.filter((sha) => sha !== headSha);
    const runs = await among(others);
    if (runs.length > 0) return chosen(runs, before + page.indexOf(runs[0]!.sha));
    before += page.length;
  }
  return none(isOther ? 'other-version' : 'not-an-ancestor');
}

/** Puts the facts of the runs into a folder. A run whose facts were dropped meanwhile is left out. */
export async function writeBaseline(
  profiles: Pick<Profiles, 'facts'>,
  { commit, runs }: Baseline,
  folder: string,
): Promise<{ label: string; path: string }[]> {
  const written: { label: string; path: string }[] = [];
  for (const { id } of runs) {
    const bytes = await profiles.facts(id);
    if (bytes === null) continue;
    const path = join(folder, `baseline-${id}.json.gz`);
    await writeFile(path, bytes, { mode: 0o600 });
    written.push({ label: labelOf(commit), path });
  }
  return written;
}

/** `main 741abc0`. */
function labelOf({ sha, branch }: BaseCommit): string {
  const name = readQueueRef(branch)?.base ?? branch;
  return `${name === null ? '' : `${name} `}${sha.slice(0, 7)}`;
}

/** What the branch did before: one point for each commit, its newest profile, oldest first. */
export async function trendOf(
  profiles: Pick<Profiles, 'ofBranch'>,
  { repository, job, baseRef, headSha }: Comparing,
  metrics: ProfileMetrics,
): Promise<Trend | null> {
  const kept = await profiles.ofBranch(repository.id, job, baseRef, TREND_POINTS * 3);
  const newest = new Map<string, KeptProfile>();
  for (const profile of kept.filter((one) => one.metrics.stepTimeMs !== null))
    if (profile.sha !== headSha && !newest.has(profile.sha)) newest.set(profile.sha, profile);
  const points = [...newest.values()].slice(0, TREND_POINTS).reverse();
  if (points.length === 0) return null;
  return { branch: baseRef, points: points.map(({ sha, recordedAt: at, metrics: of }) => ({ sha, at, metrics: of })), now: metrics };
}

const WHY_NONE: Readonly<Record<NoBaseline['reason'], L10n>> = {
  'no-profile': { en: 'no profile of it is kept', zh: '没有保存它的 profile' },
  'not-an-ancestor': {
    en: `neither the merge base nor one of the ${MAX_ANCESTORS} commits before it has a profile that can be used`,
    zh: `合并基点及其之前 ${MAX_ANCESTORS} 个提交都没有可用的 profile`,
  },
  'other-version': {
    en: 'its profiles were kept by another version of NPU Advisor; the next run of the branch brings one',
    zh: '其 profile 由另一版本的 NPU Advisor 保存；该分支下次运行后即有基线',
  },
  unrelated: { en: 'the head has no common history with it', zh: '最新提交与它没有共同的历史' },
};

/** Why there was nothing to compare with, although the branch has a history. */
function noteOf({ branch, reason }: NoBaseline, lang: Lang): string {
  const why = WHY_NONE[reason][lang];
  return lang === 'en' ? `Not compared with ${quoteLiteral(branch, 80)}: ${why}.` : `未与 ${quoteLiteral(branch, 80)} 对比：${why}。`;
}

/** The report with what the store knows: which commit it was compared with, and how the branch did before. */
export async function withHistory(
  profiles: Pick<Profiles, 'ofBranch'>,
  comparing: Comparing,
  search: BaselineSearch,
  report: Report,
): Promise<Report> {
  const trend = await trendOf(profiles, comparing, profileMetrics(report));
  const { comparison } = report;
  const commit = 'baseline' in search && comparison !== null ? search.baseline.commit : null;
  const notes = 'none' in search && trend !== null ? [...report.notes, noteOf(search.none, report.lang)] : report.notes;
  return {
    ...report,
    notes,
    comparison: comparison === null || commit === null ? comparison : { ...comparison, baseline: { ...comparison.baseline, commit } },
    views: {
      ...report.views,
      ...(trend === null ? {} : { trend }),
      ...('none' in search ? { baseline: search.none } : {}),
    },
  };
}
