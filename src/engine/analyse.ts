import { AdviseError, messageOf } from '../base/errors.ts';
import { say } from '../base/phrase.ts';
import type { GateConfig } from '../config/schema.ts';
import { jobFacts } from '../facts/job/index.ts';
import { findRankFolders, type RankFolder, rankFromFolder } from '../importers/index.ts';
import type { InputRecord } from '../model/capture.ts';
import type { Capability, RankFacts } from '../model/facts.ts';
import type { L10n, Lang, Message } from '../model/lang.ts';
import type { Remedy, RemedyContext } from '../model/remedy.ts';
import type { Finding, Recommendation, Report } from '../model/report.ts';
import type { RawFinding, Rule } from '../model/rule.ts';
import type { SourceTree } from '../model/source-tree.ts';
import { REMEDIES } from '../remedies/index.ts';
import { buildReport, type RuleOutcome } from '../report/build.ts';
import { evaluateGate } from '../report/gate.ts';
import { RULES } from '../rules/index.ts';
import { matchFrame } from '../source/match-frame.ts';
import type { ProfileEntry, ProfileSource } from '../sources/source.ts';
import { readRanks } from './read-ranks.ts';
import { socOf } from './soc.ts';
import { VERSION } from './version.ts';

export interface EngineOptions {
  readonly lang: Lang;
  /** Thresholds by rule id and option name; others keep their default. */
  readonly thresholds: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly disabledRules: readonly string[];
  readonly gate: GateConfig | null;
}

export interface Progress {
  readonly phase: 'read' | 'diagnose';
  readonly done: number;
  readonly total: number;
}

export interface AnalyseInput {
  readonly sources: readonly ProfileSource[];
  readonly options: EngineOptions;
  readonly source: SourceTree | null;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Sources → importer → rank facts → job facts → rules → savings → remedies → report. */
export async function analyse(input: AnalyseInput): Promise<Report> {
  const { options } = input;
  const folders: RankFolder[] = [];
  const inputs: InputRecord[] = [];
  const rest: ProfileEntry[] = [];
  const many = input.sources.length > 1;
  for (const source of input.sources) {
    const found = findRankFolders(source.entries);
    for (const folder of found.folders) folders.push(many ? prefixed(folder, source.label) : folder);
    rest.push(...found.rest);
  }
  for (const entry of rest.slice(0, 1_000)) inputs.push(describeRest(entry));
  if (folders.length === 0) throw nothingToRead(input.sources, rest, options.lang);

  const total = folders.reduce((sum, f) => sum + f.entries.reduce((s, e) => s + e.bytes, 0), 0);
  const read = await readRanks(folders, (done) => input.onProgress?.({ phase: 'read', done, total }), input.signal);
  // A rank folder given by itself has no name inside the upload: the upload's own name may hold the rank.
  const ranks = read.map((r) => (r.rank === null && r.folder === '' ? { ...r, rank: rankFromFolder(input.sources[0]!.label) } : r));
  const notes: Message[] = [];
  const kept = newestPerRank(ranks, notes);
  for (const rank of ranks) inputs.push(...rank.inputs);
  const usable = kept.filter((r) => r.steps.length > 0 || r.tape !== null || r.collectives.length > 0);
  if (usable.length === 0) throw unreadable(inputs, options.lang);

  input.onProgress?.({ phase: 'diagnose', done: 0, total: 1 });
  const job = jobFacts(usable);
  const outcomes = RULES.filter((r) => !options.disabledRules.includes(r.id)).map((rule) => runRule(rule, usable, options, job));
  const source = input.source;
  const report = buildReport({
    job,
    outcomes,
    inputs,
    notes,
    lang: options.lang,
    version: VERSION,
    advise: (finding, raw) => advise(finding, raw, usable, source, options.lang),
  });
  for (const rule of RULES.filter((r) => options.disabledRules.includes(r.id))) {
    const off: L10n = { en: 'switched off in the configuration', zh: '已在配置中关闭' };
    report.checked.push({ rule: rule.id, outcome: 'notApplicable', reason: off[options.lang] });
  }
  report.gate = evaluateGate(report, options.gate);
  input.onProgress?.({ phase: 'diagnose', done: 1, total: 1 });
  return report;
}

function prefixed(folder: RankFolder, label: string): RankFolder {
  const join = (path: string): string => (path === '' ? label : `${label}/${path}`);
  return { folder: join(folder.folder), entries: folder.entries.map((e) => ({ ...e, path: join(e.path) })) };
}

const NEEDS: Record<Capability, L10n> = {
  steps: { en: 'needs step marks: call `prof.step()` and use a schedule', zh: '需要迭代标记：使用 schedule 并调用 `prof.step()`' },
  'step-times': { en: 'needs `step_trace_time.csv`', zh: '需要 `step_trace_time.csv`' },
  'host-ops': { en: 'needs `trace_view.json` with CPU activity', zh: '需要包含 CPU 活动的 `trace_view.json`' },
  launches: { en: 'needs the launch flows of `trace_view.json`', zh: '需要 `trace_view.json` 中的下发连线' },
  kernels: { en: 'needs `kernel_details.csv` or device lanes', zh: '需要 `kernel_details.csv` 或设备泳道' },
  'kernel-types': { en: 'needs operator types: `profiler_level=Level1`', zh: '需要算子类型：`profiler_level=Level1`' },
  formats: { en: 'needs shapes and formats: `profiler_level=Level1`', zh: '需要 shape 与格式：`profiler_level=Level1`' },
  collectives: { en: 'no collective was recorded', zh: '没有记录到集合通信' },
  'collective-ids': { en: 'needs `communication.json`: `profiler_level=Level1`', zh: '需要 `communication.json`：`profiler_level=Level1`' },
  'cann-calls': { en: 'needs CANN calls: `profiler_level=Level1`', zh: '需要 CANN 调用：`profiler_level=Level1`' },
  stacks: { en: 'needs call stacks: `with_stack=True`', zh: '需要调用栈：`with_stack=True`' },
};

/** One rule, isolated: what it throws is its own error and never costs the report. */
function runRule(rule: Rule, ranks: readonly RankFacts[], options: EngineOptions, job: ReturnType<typeof jobFacts>): RuleOutcome {
  const lacking = rule.needs.filter((need) => !ranks.some((r) => r.capabilities.has(need)));
  if (lacking.length > 0) {
    // Without a trace everything else is missing as its consequence: name the trace.
    const first =
      lacking.includes('host-ops') || !ranks.some((r) => r.capabilities.has('host-ops'))
        ? lacking.find((n) => n === 'host-ops' || n === 'launches')
        : undefined;
    return { rule, detection: { outcome: 'notApplicable', reason: { text: NEEDS[first ?? lacking[0]!] } } };
  }
  const values: Record<string, number> = {};
  for (const [name, option] of Object.entries(rule.options)) {
    const wanted = options.thresholds[rule.id]?.[name] ?? option.default;
    values[name] = Math.min(option.max, Math.max(option.min, wanted));
  }
  try {
    return { rule, detection: rule.detect(job, values) };
  } catch (error) {
    return { rule, detection: { outcome: 'error', reason: messageOf(error).slice(0, 300) } };
  }
}

/** Several folders of one rank: the newest counts. Folder names end in a time stamp; without one, the last in name order. */
function newestPerRank(ranks: readonly RankFacts[], notes: Message[]): RankFacts[] {
  const stamp = (folder: string): string => /_(\d{14,17})_ascend_(?:pt|ms)/.exec(folder)?.[1] ?? '';
  const best = new Map<number, RankFacts>();
  const out: RankFacts[] = [];
  for (const rank of ranks) {
    if (rank.rank === null) {
      out.push(rank);
      continue;
    }
    const known = best.get(rank.rank);
    if (known === undefined) {
      best.set(rank.rank, rank);
      continue;
    }
    const [older, newer] = stamp(rank.folder) >= stamp(known.folder) ? [known, rank] : [rank, known];
    best.set(rank.rank, newer);
    notes.push({
      text: {
        en: 'rank {rank:int} was captured more than once: {newer:code} is used, {older:code} is not',
        zh: '卡 {rank:int} 有多次采集：使用 {newer:code}，不使用 {older:code}',
      },
      params: { rank: rank.rank, newer: newer.folder, older: older.folder },
    });
  }
  return [...[...best.values()].sort((a, b) => a.rank! - b.rank!), ...out];
}

function advise(finding: Finding, raw: RawFinding, ranks: readonly RankFacts[], source: SourceTree | null, lang: Lang): Recommendation[] {
  if (source !== null) {
    // A frame that the repository confirms is proven; where several files fit, the profile's word stays.
    finding.locations = finding.locations.map((location) => {
      const match = matchFrame(source, { file: location.file, line: location.line, func: location.symbol ?? '' });
      return match === null ? location : { ...location, file: match.file, line: match.line, provenBy: 'call-stack' as const };
    });
  }
  const settings = ranks.map((r) => r.settings);
  const pick = <T>(value: (s: (typeof settings)[number]) => T | null): T | null => settings.map(value).find((v) => v !== null) ?? null;
  const out: Recommendation[] = [];
  for (const { id, params } of raw.remedies) {
    const remedy: Remedy | undefined = REMEDIES.get(id);
    if (remedy === undefined) continue;
    const context: RemedyContext = {
      soc: socOf(pick((s) => s.soc)),
      torch: pick((s) => s.torch),
      torchNpu: pick((s) => s.torchNpu),
      params,
      source,
    };
    const advice = remedy.advise(finding, context);
    if (advice === null) continue;
    for (const at of advice.locations) {
      if (finding.locations.some((l) => l.file === at.file && l.line === at.line)) continue;
      finding.locations.push({ ...at, provenBy: 'syntax' });
    }
    out.push({
      remedy: id,
      title: advice.title[lang],
      text: advice.text[lang],
      code: advice.code,
      edits: [...advice.edits],
      preconditions: advice.preconditions.map((p) => p[lang]),
      references: [...advice.references],
    });
  }
  return out;
}

const OTHERS: readonly { test: RegExp; kind: string; note: L10n; fatal: L10n }[] = [
  {
    test: /(^|\/)OPPROF_|(^|\/)(OpBasicInfo|PipeUtilization|ArithmeticUtilization)\.csv$/,
    kind: 'operator profile',
    note: { en: 'output of `msprof op`: one operator, not a job', zh: '`msprof op` 的输出：单算子，不是训练作业' },
    fatal: {
      en: 'this is the output of `msprof op` (one operator); upload the profile of a training job',
      zh: '这是 `msprof op` 的输出（单算子）；请上传训练作业的 profile',
    },
  },
  {
    test: /\.db$/,
    kind: 'database export',
    note: { en: 'database exports are not read by this version', zh: '当前版本不读取 db 导出' },
    fatal: {
      en: 'it holds only a database export; capture with `export_type=[ExportType.Text]`',
      zh: '只有 db 导出；采集时设置 `export_type=[ExportType.Text]`',
    },
  },
  {
    test: /(^|\/)(PROF_\d+_\d+_|FRAMEWORK\/)/,
    kind: 'raw capture',
    note: { en: 'raw capture, not parsed yet', zh: '原始采集数据，尚未解析' },
    fatal: {
      en: 'the capture is raw; run `torch_npu.profiler.profiler.analyse(path)` where CANN is installed, then upload',
      zh: '采集数据尚未解析；在装有 CANN 的机器上执行 `torch_npu.profiler.profiler.analyse(path)` 后再上传',
    },
  },
];

function describeRest(entry: ProfileEntry): InputRecord {
  const other = OTHERS.find((o) => o.test.test(entry.path));
  return {
    path: entry.path,
    kind: other?.kind ?? 'other',
    bytes: entry.bytes,
    status: 'ignored',
    note: { text: other?.note ?? { en: 'not part of a rank folder', zh: '不属于任何卡的目录' } },
  };
}

function nothingToRead(sources: readonly ProfileSource[], rest: readonly ProfileEntry[], lang: Lang): AdviseError {
  const labels = sources.map((s) => s.label).join(', ');
  const other = OTHERS.find((o) => rest.some((e) => o.test.test(e.path)));
  const hint: L10n = other?.fatal ?? {
    en: 'upload the `*_ascend_pt` folders with their ASCEND_PROFILER_OUTPUT',
    zh: '请上传包含 ASCEND_PROFILER_OUTPUT 的 `*_ascend_pt` 目录',
  };
  const what: L10n = { en: `${labels} holds no Ascend PyTorch profile`, zh: `${labels} 中没有 Ascend PyTorch profile` };
  return new AdviseError('no-profile', what[lang], hint[lang]);
}

function unreadable(inputs: readonly InputRecord[], lang: Lang): AdviseError {
  const first = inputs.find((i) => i.status === 'refused');
  const what: L10n = { en: 'the profile files hold nothing that can be used', zh: 'profile 文件中没有可用的数据' };
  const why = first?.note == null ? '' : `${first.path}: ${say(first.note, lang)}`;
  return new AdviseError('no-profile', what[lang], why === '' ? (lang === 'en' ? 'capture again at Level1' : '请以 Level1 重新采集') : why);
}
