import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AdviseError } from '../../base/errors.ts';
import { quoteLiteral } from '../../base/phrase.ts';
import type { ComparedBase } from '../../commands/command.ts';
import { type JobSettings, jobKeyOf, jobsOf } from '../../config/jobs.ts';
import type { Config } from '../../config/schema.ts';
import { ancestorsOf } from '../../github/ancestors.ts';
import { PERMISSIONS, statusOf } from '../../github/client.ts';
import type { PullRequest } from '../../github/pull-requests.ts';
import { FACTS_SCHEMA } from '../../model/facts-schema.ts';
import type { L10n } from '../../model/lang.ts';
import type { Report } from '../../model/report.ts';
import type { KeptProfile } from '../../store/ports.ts';
import { type Baseline, findBaseline, writeBaseline } from './baseline.ts';
import type { Dependencies } from './dependencies.ts';
import type { Target } from './request.ts';

/** Commits before the one asked for that are looked through for a profile. */
const MAX_ANCESTORS = 300;
const MAX_PROFILES = 200;

interface Asked {
  readonly target: Target;
  readonly pull: PullRequest;
  readonly headSha: string;
  readonly config: Config;
  /** null: the base branch. */
  readonly ref: string | null;
  /** Name of a job of the settings; null: the only one. */
  readonly job: string | null;
}

export type Compared = { readonly report: Report; readonly base: ComparedBase } | { readonly problem: L10n };

/** Compares the kept facts of two commits. Nothing is fetched, so it works long after the artifacts are gone. */
export async function compareKept(deps: Dependencies, asked: Asked): Promise<Compared> {
  const { target, pull, headSha, config } = asked;
  const { repository, installationId } = target;
  const jobs = jobsOf(config);
  const job = asked.job === null && jobs.length === 1 ? jobs[0]! : jobs.find(({ name }) => name === asked.job);
  if (job === undefined) return { problem: whichJob(jobs) };
  const head = await keptOf(deps, repository.id, pull.number, headSha, jobKeyOf(job));
  if (head === null) return { problem: noHead(headSha, pull.headRepoId !== pull.baseRepoId) };

  const octokit = await deps.github.client(installationId, repository, PERMISSIONS.read);
  const ref = asked.ref ?? pull.baseRef;
  const sha = await octokit.rest.repos.getCommit({ owner: repository.owner, repo: repository.name, ref, per_page: 1 }).then(
    ({ data }) => data.sha,
    (error: unknown) => {
      const status = statusOf(error);
      if (status === 404 || status === 409 || status === 422) return null;
      throw error;
    },
  );
  const named = quoteLiteral(ref, 80);
  if (sha === null)
    return { problem: { en: `This repository has no branch, tag or commit ${named}`, zh: `本仓库没有分支、标签或提交 ${named}` } };
  if (sha === headSha) return { problem: { en: `${named} is the head of this pull request itself`, zh: `${named} 就是本 PR 的最新提交` } };

  const ancestry = { mergeBase: async () => sha, ancestors: (of: string) => ancestorsOf(octokit, repository, of, MAX_ANCESTORS) };
  const comparing = { repository, job: jobKeyOf(job), baseRef: ref, headSha };
  const found = await findBaseline(deps.store.profiles, ancestry, comparing, deps.now());
  if ('none' in found) {
    const short = quoteLiteral(sha.slice(0, 7));
    const isOther = found.none.reason === 'other-version';
    return {
      problem: {
        en: isOther
          ? `The profiles of ${named} were kept by another version of NPU Advisor; the next run there makes one that can be compared`
          : `No profile of ${named} (${short}), or of a commit before it, is kept; a run of the profiling workflow on that branch makes one`,
        zh: isOther
          ? `${named} 的 profile 由其他版本的 NPU Advisor 保留；该分支下次运行后即可对比`
          : `没有保留 ${named}（${short}）或其之前提交的 profile；在该分支上运行一次采集工作流即可`,
      },
    };
  }
  const report = await analyseKept(deps, head, found.baseline, job);
  if (report === null || report.comparison === null) {
    return { problem: { en: 'The kept profiles cannot be compared', zh: '保留的 profile 无法对比' } };
  }
  const { commit } = found.baseline;
  const base = {
    sha: commit.sha,
    asked: ref,
    commitsBefore: commit.isFallback ? Math.max(1, commit.commitsBefore) : 0,
    ageMs: commit.ageMs,
  };
  return { report, base };
}

/** The newest profile of the head whose facts are kept. */
async function keptOf(deps: Dependencies, repoId: number, pr: number, headSha: string, job: string): Promise<KeptProfile | null> {
  const of = [
    ...(await deps.store.profiles.ofPullRequest(repoId, job, pr, MAX_PROFILES)),
    ...(await deps.store.profiles.ofCommits(repoId, job, [headSha])),
  ];
  return of.find(({ sha, factsSchema }) => sha === headSha && factsSchema === FACTS_SCHEMA) ?? null;
}

async function analyseKept(deps: Dependencies, head: KeptProfile, baseline: Baseline, { config }: JobSettings): Promise<Report | null> {
  const facts = await deps.store.profiles.facts(head.id);
  if (facts === null) return null;
  await mkdir(deps.scratch, { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(join(deps.scratch, 'compare-'));
  try {
    const path = join(folder, 'facts.json.gz');
    await writeFile(path, facts, { mode: 0o600 });
    const runs = await writeBaseline(deps.store.profiles, baseline, folder);
    if (runs.length === 0) return null;
    const { lang, thresholds, disabled_rules: disabledRules, job } = config;
    const options = { lang, thresholds, disabledRules, gate: null, job };
    return await deps.analysisSlot(() =>
      deps.analysis.analyse({ paths: [path], partial: [], baseline: runs, keep: null, options, source: null }, { signal: deps.signal }),
    );
  } catch (error) {
    // Facts of another version, or too much of them: nothing that another try changes.
    if (error instanceof AdviseError && !deps.signal.aborted) return null;
    throw error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function whichJob(jobs: readonly JobSettings[]): L10n {
  const names = jobs.map(({ name }) => quoteLiteral(name ?? ''));
  if (jobs.length === 1 && jobs[0]!.name === null) return { en: 'The settings name no jobs', zh: '配置中没有作业' };
  return { en: `Say which job: ${names.join(', ')}`, zh: `请指明作业：${names.join('、')}` };
}

function noHead(headSha: string, isFork: boolean): L10n {
  const head = quoteLiteral(headSha.slice(0, 7));
  const why = isFork ? { en: '; those of forks are not kept', zh: '；fork 的 profile 不保留' } : { en: '', zh: '' };
  return { en: `No profile of the head ${head} is kept${why.en}`, zh: `没有保留最新提交 ${head} 的 profile${why.zh}` };
}
