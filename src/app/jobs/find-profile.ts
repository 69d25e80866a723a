import { quoteLiteral } from '../../base/phrase.ts';
import type { Wanted } from '../../commands/command.ts';
import { matchesAny } from '../../config/glob.ts';
import type { Config } from '../../config/schema.ts';
import { type Artifact, chooseArtifacts, listArtifacts } from '../../github/artifacts.ts';
import type { Octokit } from '../../github/client.ts';
import { isRunOfHead, listRuns, type PullRequest, type RunRef, readRun } from '../../github/pull-requests.ts';
import type { L10n } from '../../model/lang.ts';
import type { NoProfileReason, WorkflowRef } from '../../render/views.ts';
import type { Candidate } from './candidate.ts';
import { findAttachment } from './find-elsewhere.ts';
import type { AnalyseRequest, Target } from './request.ts';

/** Events whose artifacts may belong to a pull request, or to a branch. */
const RUN_EVENTS = [
  ...['pull_request', 'pull_request_target', 'push', 'workflow_dispatch'],
  ...['schedule', 'repository_dispatch', 'merge_group'],
];
const MAX_ARTIFACTS = 256;
const MAX_RUNS = 20;
const MAX_NAMED = 10;

export type Search =
  | { readonly kind: 'found'; readonly candidate: Candidate }
  | { readonly kind: 'running'; readonly runs: readonly (WorkflowRef & { readonly isStarted: boolean; readonly isHeld: boolean })[] }
  | { readonly kind: 'none'; readonly reason: NoProfileReason; readonly workflow: WorkflowRef | null };

/** Where a profile is looked for. `run`: has just finished and is asked first. */
export interface Sought {
  readonly target: Target;
  readonly headSha: string;
  readonly run: AnalyseRequest['run'];
}

/** The head whose runs are looked through, and the repository it lies in; null: a fork that is gone. */
type Head = Pick<PullRequest, 'headSha' | 'headRepoId'>;

export function isRunAccepted(config: Config, run: { path: string; event?: string }): boolean {
  if (run.event !== undefined && !RUN_EVENTS.includes(run.event)) return false;
  return config.workflows === null || matchesAny(config.workflows, run.path);
}

/** What GitHub lists, asked for once however many jobs look through it. */
export interface Lists {
  runs(): ReturnType<typeof listRuns>;
  artifacts(runId: number): Promise<Artifact[]>;
}

/** Only of runs that may speak for the head. */
export function listsOf(octokit: Octokit, { repository }: Target, head: Head): Lists {
  const artifacts = new Map<number, Promise<Artifact[]>>();
  let runs: ReturnType<typeof listRuns> | null = null;
  return {
    runs() {
      runs ??= listRuns(octokit, repository, head.headSha).then((all) => all.filter(({ run }) => isRunOfHead(run, head, repository)));
      return runs;
    },
    artifacts(runId) {
      const known = artifacts.get(runId) ?? listArtifacts(octokit, repository, runId);
      artifacts.set(runId, known);
      return known;
    },
  };
}

async function inspectRun(
  lists: Lists,
  wanted: Parameters<typeof chooseArtifacts>[1],
  headSha: string,
  run: Pick<RunRef, 'id' | 'name' | 'htmlUrl'>,
): Promise<Candidate> {
  const all = await lists.artifacts(run.id);
  const { id, name, htmlUrl } = run;
  return {
    run: { id, name, htmlUrl, headSha },
    artifacts: chooseArtifacts(all, wanted, { id, headSha }).slice(0, MAX_ARTIFACTS),
    uploaded: [...new Set(all.map((artifact) => artifact.name))],
  };
}

/** The newest run of the commit that uploaded a profile; the one that just finished is asked first. */
export async function findProfile(
  octokit: Octokit,
  { target, headSha, run: finished }: Sought,
  head: Head,
  config: Config,
  {
    lists = listsOf(octokit, target, head),
    isOwn = () => true,
  }: { readonly lists?: Lists; readonly isOwn?: (artifact: string) => boolean } = {},
): Promise<Search> {
  const wanted = ({ name }: Artifact): boolean => matchesAny(config.artifacts, name) && isOwn(name);
  const looked: Candidate[] = [];
  if (finished !== null && isRunAccepted(config, finished)) {
    const candidate = await inspectRun(lists, wanted, headSha, finished);
    if (candidate.artifacts.length > 0) return { kind: 'found', candidate };
    looked.push(candidate);
  }
  const running: (WorkflowRef & { isStarted: boolean; isHeld: boolean })[] = [];
  for (const { run, completed, started, held } of await lists.runs()) {
    if (run.id === finished?.id || !isRunAccepted(config, run)) continue;
    if (!completed) {
      running.push({ name: run.name, url: run.htmlUrl, isStarted: started, isHeld: held });
      continue;
    }
    if (looked.length >= MAX_RUNS) break;
    const candidate = await inspectRun(lists, wanted, headSha, run);
    if (candidate.artifacts.length > 0) return { kind: 'found', candidate };
    looked.push(candidate);
  }
  if (running.length > 0) return { kind: 'running', runs: running };
  const [first] = looked;
  if (first === undefined) return { kind: 'none', reason: { kind: 'no-run', deadlineMinutes: null }, workflow: null };
  const uploaded = [...new Set(looked.flatMap((candidate) => candidate.uploaded))].slice(0, 30);
  return { kind: 'none', reason: { kind: 'no-match', uploaded }, workflow: { name: first.run.name, url: first.run.htmlUrl } };
}

const say = (en: string, zh: string): L10n => ({ en, zh });

/** Whether a run may be analysed for a commit: of the commit, over, and of a workflow that is trusted. null: it may. */
function problemOf(
  { run, completed }: { run: RunRef; completed: boolean },
  { headSha, headRepoId }: Head,
  repository: Target['repository'],
  config: Config,
): L10n | null {
  const head = headSha.slice(0, 7);
  if (run.headSha !== headSha) {
    const own = run.headSha.slice(0, 7);
    return say(
      `Run \`${run.id}\` belongs to commit \`${own}\`, the head of this pull request is \`${head}\``,
      `运行 \`${run.id}\` 属于提交 \`${own}\`，本 PR 的最新提交是 \`${head}\``,
    );
  }
  if (!isRunOfHead(run, { headRepoId }, repository)) {
    return say(
      `Run \`${run.id}\` is of another fork than the head of this pull request`,
      `运行 \`${run.id}\` 所属的 fork 与本 PR 的来源不同`,
    );
  }
  if (!isRunAccepted(config, run)) {
    return say(
      `Run \`${run.id}\` is of a workflow or event that the settings do not accept`,
      `运行 \`${run.id}\` 的工作流或触发事件不在配置接受的范围内`,
    );
  }
  if (completed) return null;
  return say(
    `Run \`${run.id}\` has not ended; its profile is analysed when it has`,
    `运行 \`${run.id}\` 尚未结束；结束后会自动分析其 profile`,
  );
}

function nameList(names: readonly string[]): L10n {
  if (names.length === 0) return say('nothing was uploaded', '没有任何上传');
  const quoted = names.slice(0, MAX_NAMED).map((name) => quoteLiteral(name, 80));
  const more = names.length - quoted.length;
  return say(
    `uploaded: ${quoted.join(', ')}${more > 0 ? `, ${more} more` : ''}`,
    `已上传：${quoted.join('、')}${more > 0 ? ` 等 ${names.length} 个` : ''}`,
  );
}

/**
 * The upload a person points at. It must be of the head commit of the pull request: what it says is published there. A text says why it
 * cannot be analysed.
 */
export async function findWanted(
  octokit: Octokit,
  target: Target,
  of: Head,
  wanted: Wanted,
  config: Config,
): Promise<{ readonly candidate: Candidate } | { readonly problem: L10n }> {
  const { headSha } = of;
  if (wanted.attachment !== undefined) return findAttachment(octokit, target, headSha, wanted.attachment, config);
  const { owner, name } = target.repository;
  if (wanted.repository !== null && wanted.repository.toLowerCase() !== `${owner}/${name}`.toLowerCase()) {
    const [theirs, ours] = [quoteLiteral(wanted.repository), quoteLiteral(`${owner}/${name}`)];
    return { problem: say(`That run is of ${theirs}, this is ${ours}`, `该运行属于 ${theirs}，这里是 ${ours}`) };
  }
  const { artifact } = wanted;
  const isWanted = (one: Artifact): boolean =>
    artifact !== null && 'id' in artifact ? one.id === artifact.id : one.name === artifact?.name;
  const sought = artifact === null ? config.artifacts : isWanted;

  let runs: { run: RunRef; completed: boolean }[];
  if (wanted.runId !== null) {
    const found = await readRun(octokit, target.repository, wanted.runId);
    const head = headSha.slice(0, 7);
    const none = say(
      `This repository has no workflow run \`${wanted.runId}\`, and the head of this pull request is \`${head}\``,
      `本仓库没有工作流运行 \`${wanted.runId}\`；本 PR 的最新提交是 \`${head}\``,
    );
    const problem = found === null ? none : problemOf(found, of, target.repository, config);
    if (found === null || problem !== null) return { problem: problem ?? none };
    runs = [found];
  } else
    runs = (await listRuns(octokit, target.repository, headSha)).filter((one) => problemOf(one, of, target.repository, config) === null);

  const uploaded: string[] = [];
  for (const { run } of runs.slice(0, MAX_RUNS)) {
    const candidate = await inspectRun(listsOf(octokit, target, of), sought, headSha, run);
    if (candidate.artifacts.length > 0) return { candidate };
    uploaded.push(...candidate.uploaded);
  }
  const list = nameList([...new Set(uploaded)]);
  if (artifact === null) {
    return {
      problem: say(
        `Run \`${wanted.runId}\` has no artifact whose name the settings list (${list.en})`,
        `运行 \`${wanted.runId}\` 没有名称与配置匹配的 artifact（${list.zh}）`,
      ),
    };
  }
  const called = 'id' in artifact ? `\`${artifact.id}\`` : quoteLiteral(artifact.name, 80);
  return {
    problem: say(
      `No finished run of \`${headSha.slice(0, 7)}\` has the artifact ${called} (${list.en})`,
      `提交 \`${headSha.slice(0, 7)}\` 已结束的运行中没有 artifact ${called}（${list.zh}）`,
    ),
  };
}
