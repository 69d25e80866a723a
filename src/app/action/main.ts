import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { AdviseError, inOneLine, messageOf } from '../../base/errors.ts';
import { matchesAny } from '../../config/glob.ts';
import { type JobSettings, jobOfArtifact, jobsOf, touchedJobs } from '../../config/jobs.ts';
import { mergeLayers, parseConfig, type Unusable } from '../../config/parse.ts';
import { resolveLayers } from '../../config/resolve.ts';
import { type Config, DEFAULT_CONFIG } from '../../config/schema.ts';
import { VERSION } from '../../engine/version.ts';
import { type Artifact, chooseArtifacts, listArtifacts } from '../../github/artifacts.ts';
import { createTokenClient, type Octokit, statusOf } from '../../github/client.ts';
import { readSource, type SourceFiles, settingsReader } from '../../github/contents.ts';
import { isCut, listChangedFiles } from '../../github/diff.ts';
import { downloadArtifact } from '../../github/download.ts';
import { createLogger } from '../../github/log.ts';
import { createOutboundPolicy, GITHUB_ARTIFACT_HOSTS } from '../../github/outbound.ts';
import { findPullRequests } from '../../github/pull-requests.ts';
import type { Lang } from '../../model/lang.ts';
import type { Report } from '../../model/report.ts';
import { renderCheck } from '../../render/check.ts';
import { commentMarker, renderComment } from '../../render/comment.ts';
import { renderJobsCheck, renderJobsComment } from '../../render/jobs.ts';
import type { CommentView, JobsComment, NoProfileReason, RenderedCheck } from '../../render/views.ts';
import { inertText, workflowCommand } from '../../render/workflow-command.ts';
import { RULES } from '../../rules/index.ts';
import { folderSourceTree } from '../../source/folder-source-tree.ts';
import { createAnalysisRunner } from '../analysis-runner.ts';
import { isAboutUpload, ofJob, toReason } from '../jobs/make-report.ts';
import { siblingModule } from '../sibling-module.ts';
import { newestBaseRun } from './base-run.ts';
import { type Place, readPlace } from './event.ts';
import { type Inputs, type OutputName, readInputs } from './inputs.ts';
import { placeComment } from './place-comment.ts';
import { text } from './texts.ts';

type Env = Readonly<Record<string, string | undefined>>;

const CATALOG = new Map(RULES.map((rule) => [rule.id, Object.keys(rule.options)]));
const FOLDER_LIMITS = { maxFiles: 2000, maxBytes: 24 << 20, maxEntries: 100_000, maxDepth: 24 };
const SOURCE_LIMITS = { maxFiles: 200, maxBytes: 6 * 1024 * 1024 };
/** GitHub takes 1 MiB for each step. */
const SUMMARY_BYTES = 1024 * 1024 - 1024;
/** GitHub shows ten of each level for a step. */
const ANNOTATIONS = 10;
const UNUSABLE = 2;
/** Prefixes of tokens that speak for a person. */
const PERSONAL_TOKEN = /^(?:gh[pou]|github_pat)_/;

/** A pull request the report is for. */
interface Pull {
  readonly number: number;
  readonly baseRef: string;
  readonly headHtmlUrl: string | null;
  readonly fromFork: boolean;
}

interface Run {
  readonly inputs: Inputs;
  readonly place: Place;
  readonly octokit: Octokit | null;
  readonly pulls: readonly Pull[];
  readonly say: (line: string) => void;
  readonly scratch: string;
}

type Told = { readonly kind: 'report'; readonly report: Report } | { readonly kind: 'none'; readonly reason: NoProfileReason };

interface JobTold {
  readonly job: JobSettings;
  readonly told: Told;
}

/** `npu-advise action`: one step of a workflow. Returns the exit code: 0, 1 when the gate failed, 2 when something cannot be used. */
export async function runAction(env: Env, out: (text: string) => void): Promise<number> {
  const inputs = readInputs(env);
  if (inputs.digest !== null) return writeDigest(inputs, inputs.digest, out);
  const place = readPlace(env);
  const log = createLogger('silent');
  const octokit =
    inputs.token === null
      ? null
      : createTokenClient({
          token: inputs.token,
          apiUrl: place.apiUrl,
          userAgent: `npu-advisor/${VERSION}`,
          throttle: env.NPU_ADVISOR_TEST !== '1',
          log,
        });
  const say = (line: string): void => out(inertText(line, randomUUID()));
  const scratch = await mkdtemp(join(place.temp, 'npu-advisor-'));
  try {
    const run: Run = { inputs, place, octokit, pulls: await pullsOf(octokit, place), say, scratch };
    return await analyseRun(run, env, out);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Keeps the facts of a profile, for a run that must not say anything itself. */
async function writeDigest({ paths, lang }: Inputs, file: string, out: (text: string) => void): Promise<number> {
  if (paths.length === 0)
    throw new AdviseError(
      'usage',
      { en: 'digest needs a path', zh: 'digest 需要路径' },
      { en: 'Give the input path.', zh: '设置输入 path。' },
    );
  const { digest } = await import('../../cli/digest.ts');
  out(inertText(await digest(paths, file, lang ?? 'en'), randomUUID()));
  return 0;
}

async function analyseRun(run: Run, env: Env, out: (text: string) => void): Promise<number> {
  const { inputs, pulls } = run;
  const settings = await readSettings(run);
  if ('problems' in settings) {
    const lang = inputs.lang ?? settings.lang;
    for (const problem of settings.problems.slice(0, ANNOTATIONS))
      out(`${workflowCommand('error', problem, problem.message[lang].replaceAll('`', ''), text('settings-invalid', lang))}\n`);
    writeSummary(env, `### ${text('settings-invalid', lang)}\n`);
    return UNUSABLE;
  }
  const config = inputs.lang === null ? settings : { ...settings, lang: inputs.lang };
  const told = await tellJobs(run, config);
  const rendered: { readonly check: RenderedCheck; readonly pull: Pull | null }[] = [];
  for (const pull of pulls.length === 0 ? [null] : pulls) {
    const view = viewOf(run, config, told, pull);
    const annotatable = (): boolean => true;
    const check = view.state === 'jobs' ? renderJobsCheck(view, annotatable) : renderCheck({ comment: view, annotatable });
    rendered.push({ check, pull });
    if (pull === null || run.octokit === null || inputs.comment === 'never') continue;
    const body = view.state === 'jobs' ? renderJobsComment(view) : renderComment(view);
    const mayCreate = inputs.comment === 'always' || isWorthAComment(config, told);
    await placeComment(run.octokit, run.place.repository, pull.number, {
      body,
      mayCreate,
      marker: commentMarker(view.appSlug, pull.number),
      isPersonal: PERSONAL_TOKEN.test(inputs.token ?? ''),
    }).catch((error: unknown) => {
      const status = statusOf(error);
      if (status !== 403 && status !== 404) throw error;
      out(`${workflowCommand('notice', null, text('no-comment', config.lang))}\n`);
    });
  }
  const { check } = rendered[0]!;
  writeSummary(env, check.text === '' ? check.summary : `${check.summary}\n${check.text}`);
  writeOutputs(env, outputsOf(run, told, check, env));
  run.say(check.title);
  if (inputs.annotations) for (const line of annotationLines(check)) out(`${line}\n`);
  return conclude(check, told, config.lang, inputs, out);
}

function conclude(check: RenderedCheck, told: readonly JobTold[], lang: Lang, inputs: Inputs, out: (text: string) => void): number {
  if (told.every(({ told: { kind } }) => kind === 'none')) {
    const level = check.conclusion === 'failure' ? 'error' : 'warning';
    out(`${workflowCommand(level, null, text('missing', lang, { why: check.title }).replaceAll('`', ''))}\n`);
  } else if (check.conclusion === 'failure') {
    const because = told.flatMap(({ told: one }) => (one.kind === 'report' ? (one.report.gate?.because ?? []) : []));
    out(`${workflowCommand('error', null, because.join(lang === 'en' ? '; ' : '；').replaceAll('`', ''), text('failed', lang))}\n`);
  }
  return check.conclusion === 'failure' && inputs.fail === 'gate' ? 1 : 0;
}

/** The pull requests of the event: its own, or those of the run it was started by, found by branch, commit and repository. */
async function pullsOf(octokit: Octokit | null, { pull, trigger, repository }: Place): Promise<Pull[]> {
  if (pull !== null) return [pull];
  if (trigger === null || octokit === null) return [];
  // A repository number the event did not bring cannot be compared with.
  const found = await findPullRequests(octokit, repository, trigger);
  return found.map(({ number, baseRef, headHtmlUrl, headRepoId, baseRepoId }) => ({
    number,
    baseRef,
    headHtmlUrl,
    fromFork: headRepoId !== baseRepoId,
  }));
}

/** The settings of the base branch, never those a pull request brings along. */
async function readSettings({ inputs, place, octokit, pulls, say }: Run): Promise<Config | Unusable> {
  const { config: file } = inputs;
  if (file !== null) {
    const text = await readFile(file, 'utf8').catch(() => {
      throw new AdviseError(
        'config-not-found',
        { en: `${file} cannot be read`, zh: `无法读取 ${file}` },
        { en: 'Give the path of an npu-advisor.yml.', zh: '给出 npu-advisor.yml 的路径。' },
      );
    });
    const parsed = parseConfig(text, file, CATALOG);
    return parsed.ok ? parsed.value : parsed;
  }
  const ref = pulls[0]?.baseRef ?? place.defaultBranch ?? place.headSha;
  const { owner, name } = place.repository;
  if (octokit === null) {
    say(text('no-token', inputs.lang ?? 'en'));
    return DEFAULT_CONFIG;
  }
  const layers = await resolveLayers(settingsReader(octokit, place.repository), { owner, repo: name, ref }, CATALOG);
  if (!layers.ok) return layers;
  const merged = mergeLayers(
    layers.value.map(({ layer }) => layer),
    layers.value[0]?.file ?? '',
  );
  if (!merged.ok) return merged;
  const lang = inputs.lang ?? merged.value.lang;
  const files = layers.value.map((layer) => layer.file).join(' + ');
  say(files === '' ? text('no-settings', lang, { ref }) : text('settings', lang, { files: `${files} (${ref})` }));
  return merged.value;
}

function jobNamed(config: Config, name: string): JobSettings {
  const jobs = jobsOf(config);
  const job = jobs.find((one) => one.name === name);
  if (job !== undefined) return job;
  const known = jobs.flatMap((one) => (one.name === null ? [] : [one.name]));
  const hint =
    known.length === 0
      ? { en: 'The settings name no jobs.', zh: '配置中没有命名任何作业。' }
      : { en: `The settings name ${known.join(', ')}.`, zh: `配置中的作业：${known.join('、')}。` };
  throw new AdviseError('usage', { en: `there is no job "${name}"`, zh: `没有名为「${name}」的作业` }, hint);
}

async function tellJobs(run: Run, config: Config): Promise<JobTold[]> {
  const { inputs } = run;
  const source = await readSources(run);
  const wholeFile: JobSettings = { name: null, paths: null, baseline: null, config: { ...config, jobs: null } };
  if (inputs.paths.length > 0) {
    const job = inputs.job === null ? wholeFile : jobNamed(config, inputs.job);
    const paths = inputs.paths.map((path) => resolve(path));
    const missing = paths.find((path) => !existsSync(path));
    if (missing !== undefined)
      throw new AdviseError(
        'no-input',
        { en: `${missing} does not exist`, zh: `${missing} 不存在` },
        { en: 'Give the path of a profile on this runner.', zh: '给出该 runner 上 profile 的路径。' },
      );
    return [{ job, told: await tell(run, job, paths, source, { artifacts: [], baseline: [] }) }];
  }
  const { octokit } = run;
  if (octokit === null)
    throw new AdviseError(
      'usage',
      { en: 'neither a path nor a token was given', zh: '既没有给出路径，也没有给出令牌' },
      {
        en: 'Give the input path, or token to read the artifacts of a run.',
        zh: '设置输入 path；或设置 token，以读取某次运行的 artifact。',
      },
    );
  const artifacts = await artifactsOf(run, octokit, config);
  const jobs = inputs.job === null ? jobsOf(config) : [jobNamed(config, inputs.job)];
  const isSeveral = config.jobs !== null && inputs.job === null && inputs.artifacts.length === 0;
  const wanted = isSeveral ? await touchedOf(run, octokit, jobs) : jobs.slice(0, 1);
  const told: JobTold[] = [];
  for (const job of wanted) {
    const own = artifacts.filter(({ name }) =>
      inputs.artifacts.length > 0 ? matchesAny(inputs.artifacts, name) : jobOfArtifact(jobs, name) === job,
    );
    if (own.length > 0) told.push({ job, told: await tellArtifacts(run, octokit, job, own, source) });
    else if (!isSeveral) told.push({ job, told: { kind: 'none', reason: noMatch(artifacts) } });
  }
  // Each workflow brings the profiles of its own jobs; only where it brings none at all there is something to say.
  return told.length > 0 ? told : [{ job: wholeFile, told: { kind: 'none', reason: noMatch(artifacts) } }];
}

function noMatch(artifacts: readonly Artifact[]): NoProfileReason {
  return { kind: 'no-match', uploaded: [...new Set(artifacts.map(({ name }) => name))].slice(0, 30) };
}

async function touchedOf({ pulls, place }: Run, octokit: Octokit, jobs: readonly JobSettings[]): Promise<readonly JobSettings[]> {
  const [pull] = pulls;
  if (pull === undefined) return jobs;
  const changed = await listChangedFiles(octokit, place.repository, pull.number);
  if (isCut(changed)) return jobs;
  return touchedJobs(
    jobs,
    changed.flatMap(({ path, previousPath }) => (previousPath === undefined ? [path] : [path, previousPath])),
  );
}

/** Artifacts of the run, of which only those of its own commit count. A run of a workflow that is not trusted has none. */
async function artifactsOf({ inputs, place }: Run, octokit: Octokit, config: Config): Promise<Artifact[]> {
  const { trigger } = place;
  const runId = inputs.runId ?? trigger?.id ?? place.runId;
  if (trigger !== null && runId === trigger.id && config.workflows !== null && !matchesAny(config.workflows, trigger.path))
    throw new AdviseError(
      'usage',
      { en: `the settings do not trust the workflow ${trigger.path}`, zh: `配置不信任工作流 ${trigger.path}` },
      { en: 'Name it under workflows.', zh: '在 workflows 中写明它。' },
    );
  const all = await listArtifacts(octokit, place.repository, runId);
  return chooseArtifacts(all, () => true, {
    id: runId,
    headSha: inputs.runId === null ? place.headSha : (all[0]?.headSha ?? place.headSha),
  });
}

async function tellArtifacts(
  run: Run,
  octokit: Octokit,
  job: JobSettings,
  artifacts: readonly Artifact[],
  source: SourceFiles | null,
): Promise<Told> {
  try {
    const paths = await download(run, octokit, artifacts, await mkdtemp(join(run.scratch, 'download-')));
    return await tell(run, job, paths, source, { artifacts, baseline: await baselineOf(run, octokit, artifacts) });
  } catch (error) {
    if (!isAboutUpload(error)) throw error;
    return { kind: 'none', reason: toReason(error, artifacts, job.config.lang) };
  }
}

async function download({ inputs, place }: Run, octokit: Octokit, artifacts: readonly Artifact[], folder: string): Promise<string[]> {
  const hosts = inputs.artifactHosts.length > 0 ? inputs.artifactHosts : GITHUB_ARTIFACT_HOSTS;
  const policy = createOutboundPolicy(hosts, place.apiUrl);
  const paths: string[] = [];
  let left = inputs.maxArtifactBytes;
  for (const artifact of artifacts) {
    const limits = { maxBytes: left, timeoutMs: inputs.timeoutMs, attempts: 3, retryDelayMs: 2000 };
    const { signal } = new AbortController();
    const { path, bytes } = await downloadArtifact({ octokit, repository: place.repository, artifact, policy, folder, limits, signal });
    left -= bytes;
    paths.push(path);
  }
  return paths;
}

/** The same artifacts of the base branch. What is missing or damaged there is no fault of this run. */
async function baselineOf(run: Run, octokit: Octokit, artifacts: readonly Artifact[]): Promise<Baseline[]> {
  const { inputs, place, pulls, say } = run;
  const branch = inputs.baselineBranch ?? pulls[0]?.baseRef ?? null;
  if (inputs.baseline.length > 0 || branch === null || branch === 'none') return [];
  const names = new Set(artifacts.map(({ name }) => name));
  const base = await newestBaseRun(octokit, place.repository, branch, place.trigger?.id ?? place.runId, (name) => names.has(name));
  if (base === null) return [];
  const folder = await mkdtemp(join(run.scratch, 'baseline-'));
  try {
    await download(run, octokit, base.artifacts, folder);
  } catch (error) {
    if (!isAboutUpload(error)) throw error;
    say(messageOf(error));
    return [];
  }
  return [{ label: base.label, path: folder }];
}

interface Baseline {
  readonly label: string;
  readonly path: string;
}

/** One analysis in a process of its own, which has neither the token nor a network address. */
async function tell(
  run: Run,
  job: JobSettings,
  paths: readonly string[],
  source: SourceFiles | null,
  { artifacts, baseline }: { readonly artifacts: readonly Artifact[]; readonly baseline: readonly Baseline[] },
): Promise<Told> {
  const { inputs, scratch } = run;
  const folder = join(scratch, 'analysis');
  await mkdir(folder, { recursive: true });
  const analyser = pathToFileURL(siblingModule('../analyser', import.meta.url)).href;
  const runner = createAnalysisRunner(analyser, { timeoutMs: inputs.timeoutMs, memoryMb: inputs.memoryMb }, folder);
  const { lang, thresholds, disabled_rules: disabledRules, gate, job: known, mute: mutes } = job.config;
  const given = inputs.baseline.map((path) => ({ label: path, path: resolve(path) }));
  try {
    const options = { lang, thresholds, disabledRules, gate, job: known, mutes };
    const report = await runner.analyse(
      { paths, partial: [], baseline: [...given, ...baseline], options, source },
      { signal: new AbortController().signal },
    );
    if (report.verdict.outcome !== 'no-data') return { kind: 'report', report: ofJob(report, job.name) };
    return { kind: 'none', reason: { kind: 'no-profile-inside', artifact: namesOf(paths, artifacts).join(', ') } };
  } catch (error) {
    if (!isAboutUpload(error)) throw error;
    // A path that was given by hand is an input that cannot be used; an upload of somebody else is something to report.
    if (artifacts.length === 0) throw error;
    return { kind: 'none', reason: toReason(error, artifacts, lang) };
  }
}

function namesOf(paths: readonly string[], artifacts: readonly Artifact[]): string[] {
  return artifacts.length > 0 ? artifacts.map(({ name }) => name) : [...paths];
}

/** The training script as data: of the folder that was named, else of the pull request at its head, read from GitHub and never run. */
async function readSources({ inputs, place, octokit, pulls }: Run): Promise<SourceFiles | null> {
  const [pull] = pulls;
  const patchesOf = async (): Promise<SourceFiles> => {
    const changed = await listChangedFiles(octokit!, place.repository, pull!.number);
    if (inputs.source !== null) {
      const patches = changed.flatMap(({ path, patch, status }) =>
        patch === null || status === 'removed' ? [] : [[path, patch] as const],
      );
      return { files: [], patches };
    }
    return readSource(octokit!, place.repository, place.headSha, changed, SOURCE_LIMITS);
  };
  const remote =
    octokit === null || pull === undefined
      ? null
      : await patchesOf().catch((error: unknown) => {
          if (statusOf(error) === 403 || statusOf(error) === 404) return null;
          throw error;
        });
  if (inputs.source === null) return remote;
  const tree = folderSourceTree(inputs.source, FOLDER_LIMITS);
  const files = tree.paths.flatMap((path) => {
    const text = tree.read(path);
    return text === null ? [] : [[path, text] as const];
  });
  return { files, patches: remote?.patches ?? [] };
}

function viewOf({ place, inputs }: Run, config: Config, told: readonly JobTold[], pull: Pull | null): CommentView | JobsComment {
  const { lang } = config;
  const appSlug = inputs.job === null ? 'github-actions' : `github-actions.${inputs.job}`;
  const htmlBase = pull?.headHtmlUrl ?? `${place.serverUrl}/${place.repository.owner}/${place.repository.name}`;
  const base = {
    lang,
    appSlug,
    pr: pull?.number ?? 0,
    sha: place.headSha,
    links: { htmlBase, report: place.runUrl },
    isServerless: true,
  } as const;
  const one = ({ job, told: of }: JobTold): CommentView => {
    if (of.kind === 'none') {
      const { artifacts: patterns, on_missing: onMissing } = job.config;
      return { ...base, state: 'no-profile', reason: of.reason, workflow: null, patterns, onMissing };
    }
    return {
      ...base,
      state: 'report',
      report: of.report,
      reportHash: '',
      suggestions: {},
      previous: [],
      baselineMissing: false,
      fromFork: pull?.fromFork ?? false,
      pendingSha: null,
    };
  };
  const [first] = told;
  if (told.length === 1 && (first!.job.name === null || inputs.job !== null)) return one(first!);
  const jobs = told.map((each) => ({ name: each.job.name ?? '', view: one(each) }));
  return { ...base, state: 'jobs', reportHash: '', jobs, untouched: [] };
}

function isWorthAComment({ comment }: Config, told: readonly JobTold[]): boolean {
  if (comment !== 'on-findings') return comment === 'always';
  return told.some(
    ({ told: of }) =>
      of.kind === 'report' &&
      (of.report.gate?.outcome === 'fail' ||
        of.report.findings.some(({ symptomOf, severity }) => symptomOf === null && severity !== 'info')),
  );
}

function annotationLines({ annotations }: RenderedCheck): string[] {
  const lines: string[] = [];
  for (const [level, command] of [
    ['failure', 'error'],
    ['warning', 'warning'],
    ['notice', 'notice'],
  ] as const) {
    const own = annotations.filter(({ annotation_level }) => annotation_level === level);
    for (const { path, start_line, title, message } of own.slice(0, ANNOTATIONS))
      lines.push(workflowCommand(command, { file: path, line: start_line, column: null, endColumn: null }, message, title));
  }
  return lines;
}

/** Whole lines within GitHub's limit; what is left out is in report.json. */
function writeSummary(env: Env, text: string): void {
  const file = env.GITHUB_STEP_SUMMARY;
  if (file === undefined || file === '') return;
  let bytes = Buffer.from(text);
  if (bytes.length > SUMMARY_BYTES) bytes = bytes.subarray(0, bytes.lastIndexOf(10, SUMMARY_BYTES) + 1);
  appendFileSync(file, bytes);
}

const OUTCOMES = ['causes', 'incomplete', 'quiet', 'no-data', 'no-profile'] as const;

function outputsOf({ place }: Run, told: readonly JobTold[], check: RenderedCheck, env: Env): Readonly<Record<OutputName, string>> {
  const reports = told.flatMap(({ told: of }) => (of.kind === 'report' ? [of.report] : []));
  const outcomes = told.map(({ told: of }) => (of.kind === 'report' ? of.report.verdict.outcome : 'no-profile'));
  const [largest] = reports.toSorted((a, b) => (b.totals.claimedMsPerStep.likely ?? 0) - (a.totals.claimedMsPerStep.likely ?? 0));
  const saving = largest?.totals.claimedMsPerStep.likely ?? null;
  const step = largest?.job.stepTimeMs ?? null;
  const file = join(place.temp, `npu-advisor-report-${env.GITHUB_ACTION ?? 'step'}-${randomUUID().slice(0, 8)}.json`);
  if (reports.length > 0) writeFileSync(file, `${JSON.stringify(reports.length === 1 ? reports[0] : reports, null, 2)}\n`);
  const costly = reports.flatMap(({ findings }) => findings.filter(({ symptomOf }) => symptomOf === null));
  return {
    verdict: OUTCOMES.find((outcome) => outcomes.includes(outcome)) ?? 'no-profile',
    conclusion: check.conclusion === 'success' || check.conclusion === 'failure' ? check.conclusion : 'neutral',
    findings: String(costly.length),
    'saving-ms': saving === null ? '' : saving.toFixed(3),
    'saving-share': saving === null || step === null ? '' : (saving / step).toFixed(4),
    'step-ms': step === null ? '' : step.toFixed(3),
    report: reports.length === 0 ? '' : file,
  };
}

/** Values of ours only, and yet with a delimiter nobody can guess, as GitHub asks for. */
function writeOutputs(env: Env, outputs: Readonly<Record<OutputName, string>>): void {
  const file = env.GITHUB_OUTPUT;
  if (file === undefined || file === '') return;
  const end = `end-${randomUUID()}`;
  appendFileSync(
    file,
    Object.entries(outputs)
      .map(([name, value]) => `${name}<<${end}\n${value}\n${end}\n`)
      .join(''),
  );
}

/** What went wrong, as an annotation of the run. */
export function describeFailure(error: unknown, lang: Lang = 'en'): string {
  if (error instanceof AdviseError) return inOneLine(error, lang);
  return `${lang === 'en' ? 'unexpected: ' : '意外错误：'}${messageOf(error)}`;
}
