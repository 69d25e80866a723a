import { AdviseError } from '../base/errors.ts';
import { say } from '../base/phrase.ts';
import { findRankFolders, type RankFolder, rankFromFolder } from '../importers/index.ts';
import type { InputRecord } from '../model/capture.ts';
import type { RankFacts } from '../model/facts.ts';
import { factsFromJson, looksLikeFacts } from '../model/facts-json.ts';
import type { L10n, Lang, Message } from '../model/lang.ts';
import { type ProfileEntry, type ProfileSource, type RefusedArchive, readWhole } from '../sources/source.ts';
import { readRanks } from './read-ranks.ts';

export interface Collected {
  /** One entry per rank, those that hold something to judge. */
  readonly ranks: readonly RankFacts[];
  readonly inputs: readonly InputRecord[];
  readonly notes: readonly Message[];
}

export interface CollectOptions {
  readonly lang: Lang;
  readonly onBytes: (done: number, total: number) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Reads everything that was given, profiles and facts.json alike, down to the facts of each rank. Throws AdviseError when nothing can be used. */
export async function collectRanks(sources: readonly ProfileSource[], options: CollectOptions): Promise<Collected> {
  const folders: RankFolder[] = [];
  const inputs: InputRecord[] = [];
  const rest: ProfileEntry[] = [];
  const digested: RankFacts[] = [];
  const many = sources.length > 1;
  for (const source of sources) {
    const found = findRankFolders(source.entries);
    for (const folder of found.folders) folders.push(many ? prefixed(folder, source.label) : folder);
    for (const archive of source.refused) inputs.push(describeRefused(many ? `${source.label}/${archive.path}` : archive.path, archive));
    for (const entry of found.rest) {
      const facts = await readFacts(entry);
      if (facts === null) rest.push(entry);
      else digested.push(...facts);
    }
  }
  for (const entry of rest.slice(0, 1_000)) inputs.push(describeRest(entry));
  if (folders.length === 0 && digested.length === 0) throw nothingToRead(sources, rest, options.lang);

  const total = folders.reduce((sum, f) => sum + f.entries.reduce((s, e) => s + e.bytes, 0), 0);
  const read = await readRanks(folders, (done) => options.onBytes(done, total), options.signal);
  // A rank folder given by itself has no name inside the upload: the upload's own name may hold the rank.
  const named = read.map((r) => (r.rank === null && r.folder === '' ? { ...r, rank: rankFromFolder(sources[0]!.label) } : r));
  const ranks = [...digested, ...named];
  const notes: Message[] = [];
  const kept = newestPerRank(ranks, notes);
  for (const rank of ranks) inputs.push(...rank.inputs);
  const usable = kept.filter((r) => r.steps.length > 0 || r.tape !== null || r.collectives.length > 0);
  if (usable.length === 0) throw unreadable(inputs, options.lang);
  return { ranks: usable, inputs, notes };
}

/** A digest is small; a larger file of that name is something else. */
const MAX_FACTS_BYTES = 512 << 20;

/** The ranks of a facts.json, or null when the entry is none. */
async function readFacts(entry: ProfileEntry): Promise<RankFacts[] | null> {
  if (!/\.json$/i.test(entry.path) || entry.bytes > MAX_FACTS_BYTES) return null;
  let head = '';
  for await (const chunk of entry.open()) {
    head = chunk.toString('utf8', 0, Math.min(200, chunk.length));
    break;
  }
  if (!looksLikeFacts(head)) return null;
  const bytes = await readWhole(entry, MAX_FACTS_BYTES);
  return bytes === null ? null : factsFromJson(bytes.toString('utf8'));
}

function prefixed(folder: RankFolder, label: string): RankFolder {
  const join = (path: string): string => (path === '' ? label : `${label}/${path}`);
  return { folder: join(folder.folder), entries: folder.entries.map((e) => ({ ...e, path: join(e.path) })) };
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
    kind: 'other database',
    note: { en: 'not the database of a rank (`ascend_pytorch_profiler*.db`)', zh: '不是某张卡的数据库（`ascend_pytorch_profiler*.db`）' },
    fatal: {
      en: 'its databases are not those of a rank; upload the `*_ascend_pt` folders with their `ascend_pytorch_profiler*.db`',
      zh: '其中的数据库不属于某张卡；请上传包含 `ascend_pytorch_profiler*.db` 的 `*_ascend_pt` 目录',
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

function describeRefused(path: string, archive: RefusedArchive): InputRecord {
  const text: L10n = { en: 'was left closed: {why:code}', zh: '未打开：{why:code}' };
  return { path, kind: 'archive', bytes: archive.bytes, status: 'refused', note: { text, params: { why: archive.why } } };
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
