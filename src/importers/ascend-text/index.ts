import { createInterner } from '../../base/interner.ts';
import type {
  CaptureSettings,
  CollectiveRecord,
  Hardware,
  InputRecord,
  LinkSummary,
  RankCapture,
  StepTraceRow,
  TraceTables,
} from '../../model/capture.ts';
import type { L10n, Message } from '../../model/lang.ts';
import { reasonParams } from '../../sources/reason.ts';
import { type ProfileEntry, readWhole } from '../../sources/source.ts';
import { FIRST_ROWS, LAST_ROW, sampleNote } from '../capture-limit.ts';
import { createMemoryRecorder, type MemoryRecorder } from '../memory-recorder.ts';
import { DEVICE_INFO, INFO, leaf, OLDER, type RankFolder, rankFromFolder } from '../rank-folders.ts';
import { firstCommunicationUs, linkSummary, readCommunication, readLinks, readPackets } from '../read-communication.ts';
import { EMPTY_SETTINGS } from '../settings.ts';
import { readDeviceRank, readProfilerInfo, readProfilerMetadata } from '../side-files.ts';
import { scanStepTrace } from '../step-trace.ts';
import { asUtf8, type TextEncoding } from '../text-encoding.ts';
import { createOrigin } from './origin.ts';
import { readMemoryRecord, readModuleMemory, readOperatorMemory } from './read-memory.ts';
import { type CacheHits, readApis, readCacheHits, readHostOps, readKernels, readOperators } from './read-tables.ts';
import { readTrace } from './read-trace.ts';

/** Files of the text export that are read, by name. Everything else of a rank folder is listed as ignored. */
const KNOWN = new Set([
  'trace_view.json',
  'kernel_details.csv',
  'operator_details.csv',
  'step_trace_time.csv',
  'op_statistic.csv',
  'api_statistic.csv',
  'communication.json',
  'communication_matrix.json',
  'memory_record.csv',
  'operator_memory.csv',
  'npu_module_mem.csv',
  'l2_cache.csv',
  'profiler_metadata.json',
  DEVICE_INFO,
]);

/** Whether a file is opened, by its name or the one it is read as. */
export function isRead(name: string): boolean {
  return KNOWN.has(name) || INFO.test(name);
}

/** Side files are small; a bigger one is not what its name says. */
const MAX_SIDE_JSON = 256 << 20;
const NOTE = {
  textInstead: { en: 'the text export beside it is read instead', zh: '改为读取同目录的文本导出' },
  notNeeded: { en: 'not needed by any check of this version', zh: '当前版本的检查项不需要' },
  lfs: {
    en: 'only the Git LFS pointer was uploaded; run `git lfs pull` before uploading',
    zh: '上传的只是 Git LFS 指针文件；上传前先执行 `git lfs pull`',
  },
  encoding: { en: 'written as {encoding:code}, read all the same', zh: '编码为 {encoding:code}，已照常读取' },
  older: { en: 'a newer export of the same capture is read', zh: '已读取同一次采集的更新的导出' },
  slice: { en: 'one of several slices, read as one table', zh: '多个切片之一，合并为一张表读取' },
  noLane: {
    en: 'holds no lane of an Ascend profile (CANN, Ascend Hardware, Communication) and no host operator',
    zh: '没有 Ascend profile 的泳道（CANN、Ascend Hardware、Communication），也没有 Host 算子',
  },
  negative: {
    en: '{column:code} is negative in a row: that time means nothing and is left out',
    zh: '有一行的 {column:code} 为负：该时间没有意义，不使用',
  },
  gpu: {
    en: 'is the trace of a GPU: give an Ascend profile, and this trace as `--baseline`',
    zh: '是 GPU 的 trace：请提供 Ascend profile，并用 `--baseline` 指定这个 trace',
  },
  noEvent: { en: 'holds no trace event', zh: '没有任何 trace 事件' },
  cutOff: {
    en: 'ends inside the event list after {events:int} events (byte {byte:int}): the parse was cut off; run `analyse()` again',
    zh: '在第 {events:int} 个事件后（字节 {byte:int}）中断：解析未完成，重新执行 `analyse()`',
  },
  noKernel: { en: 'holds no kernel row with a name and a duration', zh: '没有带名称和耗时的 kernel 行' },
  endsEarly: {
    en: '{file:code} ends after {events:int} events (byte {byte:int}): what came later is unknown',
    zh: '{file:code} 在第 {events:int} 个事件后（字节 {byte:int}）中断：之后的内容未知',
  },
  notRead: {
    en: '{file:code} could not be read: what it holds is unknown',
    zh: '{file:code} 无法读取：其内容未知',
  },
  endsInRow: {
    en: '{file:code} ends within row {row:int}: what came later is unknown',
    zh: '{file:code} 在第 {row:int} 行中断：之后的内容未知',
  },
  noHitRate: { en: 'holds no hit rate', zh: '没有命中率' },
  noRow: { en: 'no row could be read', zh: '没有可读取的行' },
  unreadable: {
    en: 'could not be read: {why:code}; if the file is cut, parse the capture again with `analyse()` or upload it again',
    zh: '无法读取：{whyZh:code}；若文件不完整，请重新执行 `analyse()` 或重新上传',
  },
} as const;

const LFS = 'version https://git-lfs.github.com/spec/';

async function head(entry: ProfileEntry, bytes: number): Promise<string> {
  for await (const chunk of entry.open()) return chunk.toString('latin1', 0, Math.min(bytes, chunk.length));
  return '';
}

async function* counted(entry: ProfileEntry, onBytes: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of entry.open()) {
    onBytes(chunk.length);
    yield chunk;
  }
}

/** No lane that an Ascend profile has: some other tool's trace. */
function isEmpty(trace: TraceTables): boolean {
  const { steps, host, cann, device, collective, lanes } = trace;
  return steps.length + host.name.length + cann.name.length + device.name.length + collective.name.length === 0 && lanes === null;
}

/** Reads one rank folder of the text export. A damaged file costs that file, never the rank. */
export async function readRank(folder: RankFolder, onBytes: (bytes: number) => void): Promise<RankCapture> {
  const names = createInterner();
  const origin = createOrigin();
  const inputs: InputRecord[] = [];
  const notes: Message[] = [];
  const damage: Message[] = [];
  let settings: CaptureSettings = EMPTY_SETTINGS;
  let infoRank: number | null = null;
  let fileRank: number | null = null;
  let metadata: ReturnType<typeof readProfilerMetadata> | null = null;
  let trace: TraceTables | null = null;
  let kernels: RankCapture['kernels'] = null;
  let stepTrace: readonly StepTraceRow[] = [];
  let operators: RankCapture['operators'] = [];
  let apis: RankCapture['apis'] = [];
  let hostOps: RankCapture['hostOps'] = [];
  let collectives: CollectiveRecord[] = [];
  let links: LinkSummary | null = null;
  let communicationJson: unknown = null;
  let device: number | null = folder.device ?? null;
  let hardware: Hardware | null = null;
  let l2: CacheHits | null = null;
  let recorder: MemoryRecorder | null = null;
  /** Made when the first memory table comes: the steps of the trace are known by then. */
  const memory = (): MemoryRecorder => {
    recorder ??= createMemoryRecorder(trace?.steps ?? []);
    return recorder;
  };

  const json = async (entry: ProfileEntry): Promise<unknown> => {
    const bytes = await readWhole(entry, MAX_SIDE_JSON);
    if (bytes === null) throw new Error('larger than such a file can be');
    return JSON.parse(bytes.toString('utf8').replace(/^\ufeff/, ''));
  };
  const roleOf = (entry: ProfileEntry): string => folder.readAs?.[entry.path] ?? leaf(entry.path);
  const sourceName = new Map<string, string>();

  /** Trace first, so that its first event sets the rank's zero; hit rates before the kernels they belong to. */
  const place = (entry: ProfileEntry): number => ['trace_view.json', 'l2_cache.csv'].indexOf(roleOf(entry)) >>> 0;
  const ordered = [...folder.entries].sort((a, b) => place(a) - place(b));
  const merged = new Set<ProfileEntry>();
  for (const entry of ordered) {
    const name = roleOf(entry);
    const info = INFO.exec(name);
    let encoding: TextEncoding = 'utf-8';
    const record = (status: InputRecord['status'], kind: string, note: L10n | null, params: Message['params'] = {}): void => {
      const said: Message | null = note !== null ? { text: note, params } : null;
      const read: Message | null = encoding === 'utf-8' ? null : { text: NOTE.encoding, params: { encoding } };
      inputs.push({ path: entry.path, kind, bytes: entry.bytes, status, note: said ?? read });
    };
    if (!isRead(name)) {
      if (name === 'analyse.done') record('used', 'marker', null);
      else if (name === OLDER) record('ignored', 'older export', NOTE.older);
      else record('ignored', 'other', /\.db$/.test(name) ? NOTE.textInstead : NOTE.notNeeded);
      continue;
    }
    if (merged.has(entry)) {
      record('used', 'slice', NOTE.slice);
      continue;
    }
    const tracked = (from: ProfileEntry): ProfileEntry => ({
      ...from,
      open: () =>
        asUtf8(counted(from, onBytes), (found) => {
          encoding = found;
        }),
    });
    const track = tracked(entry);
    /** The entry with the other slices of the same table, in order. */
    const slices = (): AsyncIterable<Buffer>[] => {
      const others = folder.readAs === undefined ? [] : ordered.filter((e) => e !== entry && roleOf(e) === name);
      for (const other of others) merged.add(other);
      return [entry, ...others].map((e) => tracked(e).open());
    };
    sourceName.set(name, leaf(entry.path));
    try {
      if (entry.bytes < 1024 && (await head(entry, LFS.length)) === LFS) {
        record('refused', 'git-lfs pointer', NOTE.lfs);
        continue;
      }
      if (info !== null) {
        const parsed = readProfilerInfo(await json(track));
        settings = { ...settings, ...parsed.settings, torchNpu: parsed.settings.torchNpu ?? settings.torchNpu };
        infoRank = parsed.rank;
        if (info[1] !== undefined) fileRank = Number(info[1]);
        record('used', 'capture settings', null);
      } else if (name === DEVICE_INFO) {
        const parsed = readDeviceRank(await json(track));
        infoRank ??= parsed.rank;
        device ??= parsed.device;
        hardware ??= parsed.hardware;
        record('used', 'device information', null);
      } else if (name === 'profiler_metadata.json') {
        metadata = readProfilerMetadata(await json(track));
        record('used', 'metadata', null);
      } else if (name === 'trace_view.json') {
        const read = await readTrace(slices(), origin, names, undefined, folder.device ?? null);
        trace = isEmpty(read.tables) || read.isGpu ? null : read.tables;
        if (read.isGpu) record('refused', 'GPU trace', NOTE.gpu);
        else if (read.scan.events === 0) record('refused', 'trace', NOTE.noEvent);
        else if (trace === null) record('refused', 'trace', NOTE.noLane);
        else if (read.scan.truncated) {
          const place = { events: read.scan.events, byte: read.scan.lastGoodByte };
          record('partial', 'trace', NOTE.cutOff, place);
          damage.push({ text: NOTE.endsEarly, params: { file: leaf(entry.path), ...place } });
        } else if (read.limited !== null) {
          const { text, params } = sampleNote(read.limited, read.sample);
          record('partial', 'trace', text, params);
        } else record('used', 'trace', null);
      } else if (name === 'kernel_details.csv') {
        const read = await readKernels(slices(), origin, names, l2, folder.device ?? null);
        if (read === null) record('refused', 'kernels', NOTE.noKernel);
        else {
          kernels = read.table;
          record(read.truncated ? 'partial' : 'used', 'kernels', read.truncated ? LAST_ROW : null);
          if (read.truncated) damage.push({ text: NOTE.endsInRow, params: { file: leaf(entry.path), row: read.table.line.at(-1) ?? 0 } });
        }
      } else if (name === 'l2_cache.csv') {
        l2 = await readCacheHits(track.open());
        if (l2.rows === 0) record('refused', 'L2 cache', NOTE.noRow);
        else record(l2.known > 0 ? 'used' : 'ignored', 'L2 cache', l2.known > 0 ? null : NOTE.noHitRate);
      } else if (name === 'step_trace_time.csv') {
        const rows: StepTraceRow[] = [];
        const { negative, limited, cutAt } = await scanStepTrace(track.open(), (row, { type }) => {
          if (type !== 'stage') rows.push(row);
        });
        stepTrace = rows;
        if (cutAt !== null) damage.push({ text: NOTE.endsInRow, params: { file: leaf(entry.path), row: cutAt } });
        if (cutAt !== null && rows.length > 0) record('partial', 'step times', LAST_ROW);
        else if (negative !== null) record('partial', 'step times', NOTE.negative, { column: negative });
        else if (limited !== null) record('partial', 'step times', FIRST_ROWS, { rows: limited });
        else record(rows.length > 0 ? 'used' : 'refused', 'step times', rows.length > 0 ? null : cutAt === null ? NOTE.noRow : LAST_ROW);
      } else if (name === 'op_statistic.csv') {
        operators = await readOperators(track.open(), folder.device ?? null);
        record('used', 'operator totals', null);
      } else if (name === 'api_statistic.csv') {
        apis = await readApis(track.open());
        record('used', 'API totals', null);
      } else if (name === 'operator_details.csv') {
        hostOps = await readHostOps(track.open());
        record('used', 'host operators', null);
      } else if (name === 'memory_record.csv' || name === 'operator_memory.csv' || name === 'npu_module_mem.csv') {
        const rows =
          name === 'memory_record.csv'
            ? await readMemoryRecord(track.open(), origin, names, memory())
            : name === 'operator_memory.csv'
              ? await readOperatorMemory(track.open(), origin, names, memory())
              : await readModuleMemory(track.open(), names, memory());
        record(rows > 0 ? 'used' : 'refused', 'memory', rows > 0 ? null : NOTE.noRow);
      } else if (name === 'communication.json') {
        communicationJson = await json(track);
        record('used', 'collectives', null);
      } else if (name === 'communication_matrix.json') {
        links = readLinks(await json(track));
        record('used', 'links', null);
      }
    } catch (error) {
      record('refused', 'unreadable', NOTE.unreadable, reasonParams(error));
      if (name.startsWith('communication')) damage.push({ text: NOTE.notRead, params: { file: leaf(entry.path) } });
    }
  }
  const originUs = origin.us ?? firstCommunicationUs(communicationJson) ?? 0;
  if (communicationJson !== null) {
    collectives = readCommunication(communicationJson, originUs);
    links = linkSummary(links, readPackets(communicationJson));
  }
  if (metadata !== null) {
    settings = {
      ...settings,
      env: metadata.env,
      soc: metadata.soc,
      deviceMemory: metadata.deviceMemory,
      torch: metadata.torch,
      torchNpu: settings.torchNpu ?? metadata.torchNpu,
    };
  }
  return {
    folder: folder.folder,
    rank: fileRank ?? infoRank ?? rankFromFolder(folder.folder),
    device,
    hardware,
    originUs,
    files: {
      trace: sourceName.get('trace_view.json') ?? 'trace_view.json',
      kernels: sourceName.get('kernel_details.csv') ?? 'kernel_details.csv',
      steps: sourceName.get('step_trace_time.csv') ?? 'step_trace_time.csv',
      collectives: sourceName.get('communication.json') ?? 'communication.json',
    },
    names,
    settings,
    groups: metadata?.groups ?? [],
    worldSize: metadata?.worldSize ?? null,
    parallel: metadata?.parallel ?? {},
    stepTrace,
    trace,
    kernels,
    collectives,
    links,
    apis,
    operators,
    hostOps,
    memory: recorder === null ? null : (recorder as MemoryRecorder).tables(),
    inputs,
    notes,
    damage,
  };
}
