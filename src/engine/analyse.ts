import { messageOf } from '../base/errors.ts';
import type { GateConfig, JobConfig, MuteConfig } from '../config/schema.ts';
import { codeFacts } from '../facts/code/index.ts';
import { type JobFacts, jobFacts } from '../facts/job/index.ts';
import type { CodeFacts } from '../model/code.ts';
import type { JobComparison } from '../model/comparison.ts';
import type { Capability, RankFacts, UploadFacts } from '../model/facts.ts';
import type { L10n, Lang, Message } from '../model/lang.ts';
import { torchOf } from '../model/releases.ts';
import type { Remedy, RemedyContext } from '../model/remedy.ts';
import type { Finding, Recommendation, Report } from '../model/report.ts';
import type { RawFinding, Rule } from '../model/rule.ts';
import type { SourceTree } from '../model/source-tree.ts';
import { REMEDIES } from '../remedies/index.ts';
import { acknowledge } from '../report/acknowledge.ts';
import { buildReport, type ReportInput, type RuleOutcome } from '../report/build.ts';
import { evaluateGate } from '../report/gate.ts';
import { timelineView } from '../report/timeline-view.ts';
import { RULES } from '../rules/index.ts';
import { readAhead } from '../source/python-files.ts';
import type { ProfileSource } from '../sources/source.ts';
import { type Baseline, type BaselineSource, readBaseline } from './baseline.ts';
import { withComments } from './code-comments.ts';
import { type Count, collectRanks } from './collect-ranks.ts';
import { locate, missingFiles, witnessesOf } from './locate.ts';
import { type Advised, patchOf, settleEdits } from './settle-edits.ts';
import { socOf } from './soc.ts';
import { VERSION } from './version.ts';

export interface EngineOptions {
  readonly lang: Lang;
  /** Thresholds by rule id and option name; others keep their default. */
  readonly thresholds: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly disabledRules: readonly string[];
  readonly gate: GateConfig | null;
  /** What the repository says of the job; nothing by default. */
  readonly job?: JobConfig;
  /** What the repository accepts; nothing by default. Where people acknowledge, too, it is laid over the report later. */
  readonly mutes?: readonly MuteConfig[];
  /** Put the tasks of a few ranks and steps into `views.timeline`, for pictures. */
  readonly timeline?: boolean;
}

export interface Progress {
  readonly phase: 'read' | 'diagnose';
  readonly done: number;
  readonly total: number;
  /** Ranks of which everything has been read. */
  readonly ranks?: Count | undefined;
}

export interface AnalyseInput {
  readonly sources: readonly ProfileSource[];
  readonly options: EngineOptions;
  readonly source: SourceTree | null;
  /** The source with more files, once the profile has said which it names; null: there are none. Never called without `source`. */
  readonly more?: (frames: readonly string[]) => Promise<SourceTree | null>;
  /** Runs to compare with. */
  readonly baseline?: readonly BaselineSource[];
  /** Called with what was read, before it is judged. */
  readonly onFacts?: ((ranks: readonly RankFacts[], upload: UploadFacts) => void) | undefined;
  /** Called with the same report in the other language, before the report itself is returned. */
  readonly onOther?: ((report: Report) => void) | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A repository without a profile: only what needs none is looked at. */
function isSourceOnly({ sources, source }: AnalyseInput): boolean {
  return sources.length === 0 && source !== null;
}

const NO_RANKS = { ranks: [], inputs: [], notes: [], otherRanks: [] };

const NO_PROFILE: Message = { text: { en: 'no profile was given', zh: '没有提供 profile' } };

/** Sources → importer → rank facts → job facts → rules → savings → remedies → report. */
export async function analyse(input: AnalyseInput): Promise<Report> {
  const { options } = input;
  const {
    ranks: usable,
    inputs,
    notes,
    otherRanks,
  } = isSourceOnly(input)
    ? NO_RANKS
    : await collectRanks(input.sources, {
        onBytes: (done, total, ranks) => input.onProgress?.({ phase: 'read', done, total, ranks }),
        signal: input.signal,
      });
  input.onFacts?.(usable, { inputs, notes, otherRanks });

  const batch = { globalBatchSize: options.job?.global_batch_size ?? null, sequenceLength: options.job?.sequence_length ?? null };
  const given = input.baseline ?? [];
  const baseline = given.length === 0 ? null : await readBaseline(given, { batch, signal: input.signal });

  input.onProgress?.({ phase: 'diagnose', done: 0, total: 1 });
  const job = jobFacts(usable, otherRanks, { batch, ...comparing(baseline, options) });
  const code = input.source === null ? null : codeFacts(input.source);
  if (input.source !== null) await readAhead(input.source);
  const outcomes = outcomesOf(job, options, code);
  const source = await sourceFor(input, outcomes);
  const witnesses = source === null ? new Map() : witnessesOf(source, usable.find((r) => r.tape !== null)?.tape?.frames ?? []);
  const known = baseline?.job == null || !hasAllRanks(baseline.job, job) ? null : baseline.job;
  const before = known === null ? null : { job: known, outcomes: outcomesOf(known, options, null) };
  const today = new Date().toISOString().slice(0, 10);
  const reportIn = (lang: Lang, hasTimeline: boolean): Report => {
    const advised: Advised[] = [];
    const report = buildReport({
      job,
      outcomes,
      inputs,
      notes: isMindSpore(usable) ? [...notes, MINDSPORE] : notes,
      lang,
      version: VERSION,
      advise: (finding, raw) => advise(finding, raw, usable, { source, code, witnesses }, lang, advised),
      baseline: before === null ? null : causesOf(before, lang),
    });
    if (hasTimeline) report.views.timeline = timelineView(job, report);
    settleEdits(advised);
    for (const rule of RULES.filter((r) => options.disabledRules.includes(r.id))) {
      const off: L10n = { en: 'switched off in the configuration', zh: '已在配置中关闭' };
      report.checked.push({ rule: rule.id, outcome: 'notApplicable', reason: off[lang] });
    }
    const judged = acknowledge(report, { acknowledgements: [], mutes: options.mutes ?? [], today });
    const open = judged.findings.filter(({ acknowledged }) => acknowledged === undefined);
    const patch = source === null ? null : patchOf(open, source);
    return { ...judged, gate: evaluateGate(judged, options.gate), ...(patch === null ? {} : { patch }) };
  };
  const report = reportIn(options.lang, options.timeline === true);
  if (input.onOther !== undefined) {
    const other = reportIn(options.lang === 'en' ? 'zh' : 'en', false);
    input.onOther({ ...other, views: { ...report.views, ...other.views } });
  }
  input.onProgress?.({ phase: 'diagnose', done: 1, total: 1 });
  return report;
}

/** The source, with the files that the frames of the findings name and that were not read. */
async function sourceFor({ source, more }: AnalyseInput, outcomes: readonly RuleOutcome[]): Promise<SourceTree | null> {
  if (source === null || more === undefined) return source;
  const frames = outcomes.flatMap(({ detection }) => (detection.outcome === 'findings' ? detection.findings.flatMap((f) => f.frames) : []));
  const missing = missingFiles(source, frames);
  return missing.length === 0 ? source : ((await more(missing)) ?? source);
}

function outcomesOf(job: JobFacts, options: EngineOptions, code: CodeFacts | null): RuleOutcome[] {
  return RULES.filter((r) => !options.disabledRules.includes(r.id)).map((rule) => runRule(rule, options, job, code));
}

const REGRESSION = 'regression';

/** The limits of the rule decide in the comparison itself, so that its verdict stands even where the rule is switched off. */
function comparing(baseline: Baseline | null, options: EngineOptions): { compare?: (job: JobFacts) => JobComparison } {
  const rule = RULES.find((r) => r.id === REGRESSION);
  if (baseline === null || rule === undefined) return {};
  const values = valuesOf(rule, options);
  return { compare: (job) => baseline.compare(job, { minShare: values.minShare!, minMs: values.minMs! }) };
}

/** Causes of a baseline that lacks ranks would all look new. */
function hasAllRanks(base: JobFacts, job: JobFacts): boolean {
  return base.ranks.length >= job.ranks.length;
}

/** What the same rules find in the baseline, without advice. */
function causesOf(of: Pick<ReportInput, 'job' | 'outcomes'>, lang: Lang): Report {
  return buildReport({ ...of, inputs: [], notes: [], lang, version: VERSION, advise: () => [] });
}

const NEEDS: Record<Capability, L10n> = {
  steps: { en: 'needs step marks: call `prof.step()` and use a schedule', zh: '需要迭代标记：使用 schedule 并调用 `prof.step()`' },
  'step-times': { en: 'needs `step_trace_time.csv` or `analysis.db`', zh: '需要 `step_trace_time.csv` 或 `analysis.db`' },
  'host-ops': { en: 'needs CPU activity: `trace_view.json`, or the database', zh: '需要 CPU 活动：`trace_view.json` 或数据库' },
  launches: {
    en: 'needs launches: the flows of `trace_view.json`, or the database',
    zh: '需要下发记录：`trace_view.json` 中的连线或数据库',
  },
  kernels: {
    en: 'needs kernels: `kernel_details.csv`, device lanes or the database',
    zh: '需要 kernel：`kernel_details.csv`、设备泳道或数据库',
  },
  'kernel-types': { en: 'needs operator types: `profiler_level=Level1`', zh: '需要算子类型：`profiler_level=Level1`' },
  'kernel-cores': {
    en: 'needs the core each kernel ran on: `profiler_level=Level1`',
    zh: '需要每个 kernel 所在的核：`profiler_level=Level1`',
  },
  pipes: {
    en: 'needs pipe counters: `profiler_level=Level1` and `aic_metrics=PipeUtilization`',
    zh: '需要流水（pipe）计数：`profiler_level=Level1` 与 `aic_metrics=PipeUtilization`',
  },
  'l2-hits': {
    en: 'needs hit rates in `l2_cache.csv`: `l2_cache=True`',
    zh: '需要 `l2_cache.csv` 中的命中率：`l2_cache=True`',
  },
  frequency: {
    en: 'needs the AI Core frequency: device counters of `trace_view.json`, or the database',
    zh: '需要 AI Core 频率：`trace_view.json` 中的设备计数器或数据库',
  },
  formats: {
    en: 'needs shapes and formats: `profiler_level=Level1` and `record_shapes=True`',
    zh: '需要 shape 与格式：`profiler_level=Level1` 与 `record_shapes=True`',
  },
  collectives: { en: 'no collective was recorded', zh: '没有记录到集合通信' },
  'collective-ids': {
    en: 'needs `communication.json` or `analysis.db`: `profiler_level=Level1`',
    zh: '需要 `communication.json` 或 `analysis.db`：`profiler_level=Level1`',
  },
  'cann-calls': { en: 'needs CANN calls: `profiler_level=Level1`', zh: '需要 CANN 调用：`profiler_level=Level1`' },
  memory: { en: 'no memory records: needs `profile_memory=True`', zh: '没有内存记录：需要 `profile_memory=True`' },
  stacks: { en: 'needs call stacks: `with_stack=True`', zh: '需要调用栈：`with_stack=True`' },
};

/** Where MindSpore's profiler differs: it marks no steps, and has shapes without being asked for them. */
const MINDSPORE_NEEDS: Partial<Record<Capability, L10n>> = {
  steps: { en: 'needs step marks, which a MindSpore profile does not hold', zh: '需要迭代标记，MindSpore 的 profile 中没有' },
  formats: { en: 'needs shapes and formats: `profiler_level=Level1`', zh: '需要 shape 与格式：`profiler_level=Level1`' },
};

/** The options of a rule, within their bounds. */
function valuesOf(rule: Rule, options: EngineOptions): Record<string, number> {
  const values: Record<string, number> = {};
  for (const [name, option] of Object.entries(rule.options)) {
    const wanted = options.thresholds[rule.id]?.[name] ?? option.default;
    values[name] = Math.min(option.max, Math.max(option.min, wanted));
  }
  return values;
}

/** One rule, isolated: what it throws is its own error and never costs the report. */
function runRule(rule: Rule, options: EngineOptions, job: JobFacts, code: CodeFacts | null): RuleOutcome {
  const { ranks } = job;
  if (ranks.length === 0 && rule.category !== 'code') return { rule, detection: { outcome: 'notApplicable', reason: NO_PROFILE } };
  const lacking = rule.needs.filter((need) => !ranks.some((r) => r.capabilities.has(need)));
  const values = valuesOf(rule, options);
  if (lacking.length > 0) {
    try {
      const detection = lacking.includes('steps') ? (rule.detectWithoutSteps?.(job, values) ?? null) : null;
      if (detection !== null) return { rule, detection };
    } catch (error) {
      return { rule, detection: { outcome: 'error', reason: messageOf(error).slice(0, 300) } };
    }
    // Without a trace everything else is missing as its consequence: name the trace.
    const first =
      lacking.includes('host-ops') || !ranks.some((r) => r.capabilities.has('host-ops'))
        ? lacking.find((n) => n === 'host-ops' || n === 'launches')
        : undefined;
    const need = first ?? lacking[0]!;
    const text = (isMindSpore(ranks) ? MINDSPORE_NEEDS[need] : undefined) ?? NEEDS[need];
    return { rule, detection: { outcome: 'notApplicable', reason: { text } } };
  }
  try {
    return { rule, detection: rule.detect(job, values, code) };
  } catch (error) {
    return { rule, detection: { outcome: 'error', reason: messageOf(error).slice(0, 300) } };
  }
}

const MINDSPORE: Message = {
  text: {
    en: 'The job runs on MindSpore. Advice that only a PyTorch program can follow is left out.',
    zh: '作业使用 MindSpore。省略只适用于 PyTorch 程序的建议。',
  },
};

function isMindSpore(ranks: readonly RankFacts[]): boolean {
  return ranks.some((r) => r.settings.framework === 'MindSpore');
}

interface KnownCode {
  readonly source: SourceTree | null;
  readonly code: CodeFacts | null;
  readonly witnesses: ReturnType<typeof witnessesOf>;
}

function advise(
  finding: Finding,
  raw: RawFinding,
  ranks: readonly RankFacts[],
  { source, code, witnesses }: KnownCode,
  lang: Lang,
  advised: Advised[],
): Recommendation[] {
  if (source !== null) finding.locations = locate(source, raw.frames, witnesses);
  const framework = isMindSpore(ranks) ? 'MindSpore' : 'PyTorch';
  const settings = ranks.map((r) => r.settings);
  const pick = <T>(value: (s: (typeof settings)[number]) => T | null): T | null => settings.map(value).find((v) => v !== null) ?? null;
  // What the profile does not record, the repository may ask for; a torch_npu package is named after its torch.
  const torchNpu = pick((s) => s.torchNpu) ?? code?.versions.torchNpu ?? null;
  const torch = pick((s) => s.torch) ?? (torchNpu === null ? null : torchOf(torchNpu)) ?? code?.versions.torch ?? null;
  const out: Recommendation[] = [];
  for (const { id, params } of raw.remedies) {
    const remedy: Remedy | undefined = REMEDIES.get(id);
    if (remedy === undefined || !(remedy.frameworks ?? ['PyTorch']).includes(framework)) continue;
    const context: RemedyContext = {
      soc: socOf(pick((s) => s.soc)),
      torch,
      torchNpu,
      params,
      source,
      ...(raw.sites === undefined ? {} : { sites: raw.sites }),
    };
    const advice = remedy.advise(finding, context);
    if (advice === null) continue;
    for (const at of advice.locations) {
      if (finding.locations.some((l) => l.file === at.file && l.line === at.line)) continue;
      finding.locations.push({ ...at, provenBy: 'syntax' });
    }
    const recommendation: Recommendation = {
      remedy: id,
      title: advice.title[lang],
      text: advice.text[lang],
      code: advice.code === null ? null : withComments(advice.code, lang),
      edits: [...advice.edits],
      preconditions: advice.preconditions.map((p) => p[lang]),
      references: [...advice.references],
    };
    out.push(recommendation);
    advised.push({ recommendation, finding, remedy, context });
  }
  return out;
}
