import { createInterner } from '../../base/interner.ts';
import type {
  CaptureFiles,
  CaptureSettings,
  CollectiveRecord,
  InputRecord,
  LinkSummary,
  RankCapture,
  StepTraceRow,
} from '../../model/capture.ts';
import type { L10n, Message } from '../../model/lang.ts';
import { reasonParams } from '../../sources/reason.ts';
import { type ProfileEntry, readWhole } from '../../sources/source.ts';
import { FIRST_ROWS, sampleNote } from '../capture-limit.ts';
import { withDatabase } from '../database.ts';
import { DEVICE_INFO, databaseRank, INFO, leaf, OLDER, type RankFolder, rankFromFolder, roleOf } from '../rank-folders.ts';
import { linkSummary } from '../read-communication.ts';
import { EMPTY_SETTINGS } from '../settings.ts';
import { type ProfilerMetadata, readDeviceRank, readProfilerInfo, readProfilerMetadata } from '../side-files.ts';
import { firstCollectiveUs, MAX_OPS, readCollectives, readLinks, readPackets, readStepTrace } from './read-analysis.ts';
import { type DatabaseCapture, readCapture } from './read-capture.ts';

const ANALYSIS = 'analysis.db';
const MAX_SIDE_JSON = 256 << 20;
const LFS_BYTES = 1_024;
const NOTE = {
  notNeeded: { en: 'not needed by any check of this version', zh: '当前版本的检查项不需要' },
  log: { en: 'its changes are read with the database', zh: '其中的改动随数据库一起读取' },
  emptyLog: { en: 'holds no change', zh: '没有改动' },
  another: { en: 'another database of this rank is read', zh: '已读取该卡的另一个数据库' },
  lfs: {
    en: 'only the Git LFS pointer was uploaded; run `git lfs pull` before uploading',
    zh: '上传的只是 Git LFS 指针文件；上传前先执行 `git lfs pull`',
  },
  empty: {
    en: 'holds no table of a profile with a row: capture again, or run `analyse()` again',
    zh: '没有任何含数据的 profile 表：重新采集，或重新执行 `analyse()`',
  },
  lacks: { en: 'lacks {tables:code}; what they hold is unknown', zh: '缺少 {tables:code}；其中的数据未知' },
  damaged: {
    en: '{tables:code} could not be read to the end ({why:code}): run `analyse()` again, or copy the file again',
    zh: '{tables:code} 未能读完（{whyZh:code}）：重新执行 `analyse()`，或重新复制该文件',
  },
  broken: { en: '{tables:code} of {file:code} could not be read to the end', zh: '{file:code} 的 {tables:code} 未能读完' },
  unreadable: { en: 'could not be read: {why:code}', zh: '无法读取：{whyZh:code}' },
} as const;

/** The files of a rank folder that are opened. */
export function filesRead(folder: RankFolder): ProfileEntry[] {
  const main = mainDatabase(folder);
  const read = folder.entries.filter((e) => e === main || roleOf(folder, e) === ANALYSIS || isSide(roleOf(folder, e)));
  const logs = new Set(read.map((e) => `${e.path}-wal`));
  return [...read, ...folder.entries.filter((e) => logs.has(e.path))];
}

function isSide(name: string): boolean {
  return INFO.test(name) || name === 'profiler_metadata.json' || name === DEVICE_INFO;
}

/** Reads one rank folder of the database export. A damaged table costs that table, a damaged file that file, never the rank. */
export async function readRank(folder: RankFolder, onBytes: (bytes: number) => void): Promise<RankCapture> {
  const names = createInterner();
  const inputs: InputRecord[] = [];
  let settings: CaptureSettings = EMPTY_SETTINGS;
  let infoRank: number | null = null;
  let fileRank: number | null = null;
  let metadata: ProfilerMetadata | null = null;
  let capture: DatabaseCapture | null = null;
  let stepTrace: StepTraceRow[] = [];
  let collectives: CollectiveRecord[] = [];
  let links: LinkSummary | null = null;
  let originUs = 0;
  const broken: Message[] = [];

  const main = mainDatabase(folder);
  const logOf = (entry: ProfileEntry): ProfileEntry | null =>
    folder.entries.find((e) => e.path === `${entry.path}-wal` && e.bytes > 0) ?? null;
  /** Settings first, then the main database, which sets the rank's zero, then the one of its sums. */
  const place = (entry: ProfileEntry): number => (entry === main ? 1 : roleOf(folder, entry) === ANALYSIS ? 2 : 0);
  for (const entry of [...folder.entries].sort((a, b) => place(a) - place(b))) {
    const name = roleOf(folder, entry);
    const info = INFO.exec(name);
    const record = (status: InputRecord['status'], kind: string, note: L10n | null, params: Message['params'] = {}): void => {
      inputs.push({ path: entry.path, kind, bytes: entry.bytes, status, note: note === null ? null : { text: note, params } });
    };
    if (entry !== main && name !== ANALYSIS && !isSide(name)) {
      if (name === 'analyse.done') record('used', 'marker', null);
      else if (databaseRank(name) !== null || name === OLDER) record('ignored', 'database', NOTE.another);
      else if (name.endsWith('.db-wal')) record(entry.bytes > 0 ? 'used' : 'ignored', 'log', entry.bytes > 0 ? NOTE.log : NOTE.emptyLog);
      else record('ignored', 'other', NOTE.notNeeded);
      continue;
    }
    try {
      if (entry.bytes < LFS_BYTES && (await readWhole(entry, LFS_BYTES))?.toString('latin1').startsWith('version https://git-lfs.')) {
        record('refused', 'git-lfs pointer', NOTE.lfs);
      } else if (info !== null) {
        const parsed = readProfilerInfo(await json(entry));
        settings = { ...settings, ...parsed.settings };
        infoRank = parsed.rank;
        if (info[1] !== undefined) fileRank = Number(info[1]);
        record('used', 'capture settings', null);
      } else if (name === DEVICE_INFO) {
        infoRank ??= readDeviceRank(await json(entry)).rank;
        record('used', 'device information', null);
      } else if (name === 'profiler_metadata.json') {
        metadata = readProfilerMetadata(await json(entry));
        record('used', 'metadata', null);
      } else if (entry === main) {
        const read = await withDatabase(entry, logOf(entry), (db) => readCapture(db, names, undefined, folder.device ?? null));
        capture = read;
        originUs = read.originUs ?? 0;
        const { damage, lacking, limited } = read;
        if (read.trace === null && read.kernels === null && damage.length === 0) record('refused', 'database', NOTE.empty);
        else if (damage.length > 0) {
          const status = read.trace === null && read.kernels === null ? 'refused' : 'partial';
          const tables = [...new Set(damage.map((d) => d.table))];
          record(status, 'database', NOTE.damaged, { tables, ...reasonParams(damage[0]!.why) });
          broken.push({ text: NOTE.broken, params: { file: leaf(entry.path), tables } });
        } else if (limited !== null) {
          const { text, params } = sampleNote(limited, read.sample);
          record('partial', 'database', text, params);
        } else if (lacking.length > 0) record('partial', 'database', NOTE.lacks, { tables: lacking });
        else record('used', 'database', null);
      } else {
        const device = folder.device ?? capture?.metadata?.device ?? null;
        const unread = await withDatabase(entry, logOf(entry), (db) => {
          if (originUs === 0) originUs = firstCollectiveUs(db) ?? 0;
          stepTrace = readStepTrace(db, device);
          collectives = readCollectives(db, originUs);
          links = linkSummary(readLinks(db), readPackets(db));
          return db.broken;
        });
        if (unread.length > 0) {
          const tables = unread.map((b) => b.table);
          record(stepTrace.length + collectives.length > 0 ? 'partial' : 'refused', 'step times', NOTE.damaged, {
            tables,
            ...reasonParams(unread[0]!.why),
          });
          broken.push({ text: NOTE.broken, params: { file: leaf(entry.path), tables } });
        } else if (stepTrace.length === 0 && collectives.length === 0) record('refused', 'step times', NOTE.empty);
        else if (collectives.length >= MAX_OPS) record('partial', 'step times and collectives', FIRST_ROWS, { rows: MAX_OPS });
        else record('used', collectives.length > 0 ? 'step times and collectives' : 'step times', null);
      }
    } catch (error) {
      record('refused', entry === main || name === ANALYSIS ? 'database' : 'unreadable', NOTE.unreadable, reasonParams(error));
    }
    onBytes(entry.bytes);
  }
  const own = capture?.metadata ?? null;
  const mainRank = main === null ? null : databaseRank(roleOf(folder, main));
  return {
    folder: folder.folder,
    rank: fileRank ?? (mainRank !== null && mainRank >= 0 ? mainRank : null) ?? infoRank ?? own?.rank ?? rankFromFolder(folder.folder),
    device: folder.device ?? own?.device ?? null,
    hardware: null,
    originUs,
    files: filesOf(main, collectives.length > 0),
    names,
    settings: {
      ...settings,
      env: { ...own?.env, ...metadata?.env },
      soc: metadata?.soc ?? own?.soc ?? null,
      deviceMemory: metadata?.deviceMemory ?? own?.deviceMemory ?? null,
      torch: metadata?.torch ?? own?.torch ?? null,
      torchNpu: settings.torchNpu ?? metadata?.torchNpu ?? own?.torchNpu ?? null,
    },
    groups: metadata !== null && metadata.groups.length > 0 ? metadata.groups : (own?.groups ?? []),
    worldSize: metadata?.worldSize ?? own?.worldSize ?? null,
    parallel: { ...own?.parallel, ...metadata?.parallel },
    stepTrace,
    trace: capture?.trace ?? null,
    kernels: capture?.kernels ?? null,
    collectives,
    links,
    apis: [],
    operators: [],
    hostOps: [],
    memory: capture?.memory ?? null,
    inputs,
    notes: [],
    damage: broken,
  };
}

function filesOf(main: ProfileEntry | null, analysed: boolean): CaptureFiles {
  const own = main === null ? ANALYSIS : leaf(main.path);
  return { trace: own, kernels: own, steps: ANALYSIS, collectives: analysed ? ANALYSIS : own };
}

async function json(entry: ProfileEntry): Promise<unknown> {
  const bytes = await readWhole(entry, MAX_SIDE_JSON);
  if (bytes === null) throw new Error('larger than such a file can be');
  return JSON.parse(bytes.toString('utf8').replace(/^\ufeff/, ''));
}

/** One with a rank in its name before one without; of several, the largest. */
function mainDatabase(folder: RankFolder): ProfileEntry | null {
  const found = folder.entries.filter((e) => databaseRank(roleOf(folder, e)) !== null);
  const ranked = (e: ProfileEntry): number => (databaseRank(roleOf(folder, e))! >= 0 ? 1 : 0);
  return [...found].sort((a, b) => ranked(b) - ranked(a) || b.bytes - a.bytes || (a.path < b.path ? -1 : 1))[0] ?? null;
}
