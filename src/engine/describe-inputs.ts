import type { RawCapture } from '../importers/index.ts';
import type { InputRecord } from '../model/capture.ts';
import type { RankFacts } from '../model/facts.ts';
import type { L10n, Message } from '../model/lang.ts';
import { reasonParams } from '../sources/index.ts';
import type { ProfileEntry, RefusedArchive } from '../sources/source.ts';

/** Files of other tools, or of this one in a state that cannot be read: what they are, and what to do when nothing else is there. */
export interface Foreign {
  readonly test: RegExp;
  readonly kind: string;
  readonly note: L10n;
  readonly fatal: L10n;
}

export const FOREIGN: readonly Foreign[] = [
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
    test: /(^|\/)(chrome_tracing\.json|profiler\.db|request\.csv|kvcache\.csv|batch\.csv)$/,
    kind: 'service profile',
    note: {
      en: 'output of MS Service Profiler: requests of a serving engine, not the work of a rank',
      zh: 'MS Service Profiler 的输出：推理服务的请求，不是某张卡的工作',
    },
    fatal: {
      en: 'this is the output of MS Service Profiler (requests); upload `trace_view.json` and `kernel_details.csv` of a rank',
      zh: '这是 MS Service Profiler 的输出（请求）；请上传某张卡的 `trace_view.json` 与 `kernel_details.csv`',
    },
  },
  {
    test: /\.db$/,
    kind: 'other database',
    note: { en: 'not the database of a rank (`ascend_pytorch_profiler*.db`)', zh: '不是某张卡的数据库（`ascend_pytorch_profiler*.db`）' },
    fatal: {
      en: 'its databases are not those of a rank; upload the `*_ascend_pt` folders with their `ascend_pytorch_profiler*.db`',
      zh: '其中的数据库不属于某张卡；请上传包含 `ascend_pytorch_profiler*.db` 的 `*_ascend_pt` 目录',
    },
  },
  {
    test: /(^|\/)op_statistic(_\d+)?\.csv$/,
    kind: 'operator totals',
    note: {
      en: 'totals only, without times; needs `kernel_details.csv` beside it',
      zh: '只有汇总，没有时间；需要同时提供 `kernel_details.csv`',
    },
    fatal: {
      en: 'operator totals alone have no times; upload `kernel_details.csv` or `trace_view.json` of the same capture',
      zh: '只有算子汇总，没有时间；请上传同一次采集的 `kernel_details.csv` 或 `trace_view.json`',
    },
  },
];

export function describeRest(entry: ProfileEntry): InputRecord {
  const other = FOREIGN.find((o) => o.test.test(entry.path));
  return {
    path: entry.path,
    kind: other?.kind ?? 'other',
    bytes: entry.bytes,
    status: 'ignored',
    note: { text: other?.note ?? { en: 'not part of a rank folder', zh: '不属于任何卡的目录' } },
  };
}

export function describeGpu(entry: ProfileEntry): InputRecord {
  const text: L10n = {
    en: 'trace of a GPU: nothing to diagnose on an NPU; give it as `--baseline` to compare with it',
    zh: 'GPU 的 trace：没有 NPU 数据可诊断；用 `--baseline` 指定它即可对比',
  };
  return { path: entry.path, kind: 'GPU trace', bytes: entry.bytes, status: 'ignored', note: { text } };
}

export function describeRefused(path: string, archive: RefusedArchive): InputRecord {
  const text: L10n = { en: 'was left closed: {why:code}', zh: '未打开：{whyZh:code}' };
  return { path, kind: 'archive', bytes: archive.bytes, status: 'refused', note: { text, params: reasonParams(archive.why) } };
}

/** Raw data beside an export: one record for all of it. */
export function describeBeside(entries: readonly ProfileEntry[]): InputRecord[] {
  if (entries.length === 0) return [];
  const text: L10n = { en: '{n:int} raw files; the export made of them is read', zh: '{n:int} 个原始文件；读取由其生成的导出' };
  const bytes = entries.reduce((sum, e) => sum + e.bytes, 0);
  return [{ path: entries[0]!.path, kind: 'raw data', bytes, status: 'ignored', note: { text, params: { n: entries.length } } }];
}

/** The call that parses a raw capture, by the framework that its folder names. */
export function analyseCall(captures: readonly RawCapture[], label: string): string {
  const isMindSpore = captures.length > 0 && captures.every((c) => /_ascend_ms$/.test(c.folder === '' ? label : c.folder));
  return `${isMindSpore ? 'mindspore' : 'torch_npu'}.profiler.profiler.analyse(path)`;
}

export function describeRaw(capture: RawCapture, label: string): InputRecord {
  const folder = capture.folder === '' ? label : capture.folder;
  const call = analyseCall([capture], label);
  const text: L10n = {
    en: `raw, not analysed: run \`${call}\` on {folder:code} where CANN is installed`,
    zh: `原始数据，尚未解析：在装有 CANN 的机器上对 {folder:code} 执行 \`${call}\``,
  };
  return { path: folder, kind: 'raw capture', bytes: capture.bytes, status: 'ignored', note: { text, params: { folder } } };
}

/** Ranks that were captured but not parsed, beside some that were. */
export function rawNote(raw: readonly RawCapture[], usable: readonly RankFacts[]): Message[] {
  const lacking = raw.filter((c) => c.rank === null || !usable.some((r) => r.rank === c.rank));
  if (lacking.length === 0) return [];
  const call = analyseCall(lacking, '');
  return [
    {
      text: {
        en: `Rank {ranks:ranks}: raw, not analysed ({n:int} of {all:int} folders). Run \`${call}\` on each, then upload again.`,
        zh: `卡 {ranks:ranks}：原始数据，尚未解析（{all:int} 个目录中有 {n:int} 个）。逐个执行 \`${call}\` 后重新上传。`,
      },
      params: { ranks: lacking.map((c) => c.rank ?? -1), n: lacking.length, all: lacking.length + usable.length },
    },
  ];
}
