import { createInterner } from '../../base/interner.ts';
import type { CollectiveRecord, GroupInfo, InputRecord, RankCapture, StepTraceRow } from '../../model/capture.ts';
import type { L10n, Message } from '../../model/lang.ts';
import { reasonParams } from '../../sources/reason.ts';
import { type ProfileEntry, readWhole } from '../../sources/source.ts';
import { FIRST_ROWS, LAST_ROW } from '../capture-limit.ts';
import { withDatabase } from '../database.ts';
import { leaf } from '../rank-folders.ts';
import { firstCommunicationUs, linkSummary, readCommunication, readMatrix, readPackets } from '../read-communication.ts';
import { EMPTY_SETTINGS } from '../settings.ts';
import { scanStepTrace } from '../step-trace.ts';
import { asUtf8 } from '../text-encoding.ts';
import type { ClusterFolder } from './find.ts';
import { type ClusterDatabase, readClusterDatabase } from './read-database.ts';
import { byRank, bySource, groupsOf } from './split.ts';

const STEPS = 'cluster_step_trace_time.csv';
const COLLECTIVES = 'cluster_communication.json';
const MATRIX = 'cluster_communication_matrix.json';
const GROUPS = 'communication_group.json';
const MAX_JSON = 512 << 20;
const MAX_RANKS = 200_000;
const MAX_NAMED = 8;
const NOTE = {
  notNeeded: { en: 'not needed by any check of this version', zh: '当前版本的检查项不需要' },
  textInstead: { en: 'the text form beside it is read instead', zh: '改为读取同目录的文本形式' },
  log: { en: 'its changes are read with the database', zh: '其中的改动随数据库一起读取' },
  noTable: {
    en: 'holds no table of ranks (`ClusterStepTraceTime`, `ClusterCommunicationTime`) with a row: run `msprof-analyze cluster -m all` again',
    zh: '没有任何含数据的各卡表（`ClusterStepTraceTime`、`ClusterCommunicationTime`）：重新执行 `msprof-analyze cluster -m all`',
  },
  slow: {
    en: '`SlowRank` of `msprof-analyze`: the others waited most often for rank {ranks:text}',
    zh: '`msprof-analyze` 的 `SlowRank`：其余卡最常等待卡 {ranks:text}',
  },
  onlySlow: {
    en: 'the others waited most often for rank {ranks:text}, says `SlowRank`; whether the host or the card of these is slow needs `msprof-analyze cluster -m all`, or the folders of the ranks',
    zh: '`SlowRank` 显示其余卡最常等待卡 {ranks:text}；是 Host 慢还是 NPU 慢，需要 `msprof-analyze cluster -m all` 或各卡的目录',
  },
  damaged: {
    en: '{tables:code} could not be read to the end ({why:code}): copy the file again, or run `msprof-analyze cluster` again',
    zh: '{tables:code} 未能读完（{whyZh:code}）：重新复制该文件，或重新执行 `msprof-analyze cluster`',
  },
  unknownTables: {
    en: '{tables:code} are tables unknown to this version and not read',
    zh: '{tables:code} 是当前版本不认识的表，未读取',
  },
  sample: {
    en: 'is larger than any cluster: only its first rows are used',
    zh: '超出任何集群的规模：只使用前面的行',
  },
  noRank: { en: 'holds no row of a rank: stage rows are maxima over ranks', zh: '没有任何卡的行：stage 行是各卡的最大值' },
  negative: {
    en: '{column:code} is negative in a row: that time means nothing and is left out',
    zh: '有一行的 {column:code} 为负：该时间没有意义，不使用',
  },
  unreadable: { en: 'could not be read: {why:code}', zh: '无法读取：{whyZh:code}' },
} as const;

/** Whether a table is opened. */
export function isRead(name: string): boolean {
  return name === STEPS || name === COLLECTIVES || name === MATRIX || name === GROUPS || /\.db(-wal)?$/.test(name);
}

/** Reads the tables of `cluster_analysis_output` as far as they tell of single ranks: step times, collectives, groups. */
export async function readCluster(cluster: ClusterFolder): Promise<{ captures: RankCapture[]; inputs: InputRecord[] }> {
  const inputs: InputRecord[] = [];
  const steps = new Map<number, StepTraceRow[]>();
  let collectives = new Map<number, unknown>();
  let matrix = new Map<number, unknown>();
  let groups: GroupInfo[] = [];
  const files = { steps: STEPS, collectives: COLLECTIVES };
  const notes: Message[] = [];
  const isDatabase = (entry: ProfileEntry): boolean => entry.path.endsWith('.db');
  /** The text form first: a database only adds what that lacks. */
  for (const entry of [...cluster.entries].sort((a, b) => Number(isDatabase(a)) - Number(isDatabase(b)))) {
    const record = (status: InputRecord['status'], kind: string, note: L10n | null, params: Message['params'] = {}): void => {
      inputs.push({ path: entry.path, kind, bytes: entry.bytes, status, note: note === null ? null : { text: note, params } });
    };
    try {
      switch (leaf(entry.path)) {
        case STEPS: {
          const { negative, limited, cutAt } = await scanStepTrace(
            asUtf8(entry.open(), () => {}),
            (row, { type, index }) => {
              const rank = type === 'stage' || index === null || !/^\d{1,7}$/.test(index) ? null : Number(index);
              if (rank === null || (steps.size >= MAX_RANKS && !steps.has(rank))) return;
              const rows = steps.get(rank);
              if (rows === undefined) steps.set(rank, [row]);
              else rows.push(row);
            },
          );
          if (steps.size === 0) record('refused', 'cluster step times', NOTE.noRank);
          else if (cutAt !== null) record('partial', 'cluster step times', LAST_ROW);
          else if (limited !== null) record('partial', 'cluster step times', FIRST_ROWS, { rows: limited });
          else
            record(negative === null ? 'used' : 'partial', 'cluster step times', negative === null ? null : NOTE.negative, {
              column: negative,
            });
          break;
        }
        case COLLECTIVES:
          collectives = byRank(await json(entry));
          record('used', 'cluster collectives', null);
          break;
        case MATRIX:
          matrix = bySource(await json(entry));
          record('used', 'cluster links', null);
          break;
        case GROUPS:
          groups = groupsOf(await json(entry));
          record('used', 'groups', null);
          break;
        default: {
          if (!isDatabase(entry)) {
            const isLog = entry.path.endsWith('.db-wal') && entry.bytes > 0;
            record(isLog ? 'used' : 'ignored', isLog ? 'log' : 'cluster tables', isLog ? NOTE.log : NOTE.notNeeded);
            break;
          }
          if (steps.size > 0 && collectives.size > 0) {
            record('ignored', 'cluster database', NOTE.textInstead);
            break;
          }
          const log = cluster.entries.find((e) => e.path === `${entry.path}-wal` && e.bytes > 0) ?? null;
          const read = await withDatabase(entry, log, readClusterDatabase);
          const calls = byRank(read.communication);
          if (steps.size === 0 && read.steps.size > 0) files.steps = leaf(entry.path);
          if (steps.size === 0) for (const [rank, rows] of read.steps) steps.set(rank, rows);
          if (collectives.size === 0 && calls.size > 0) files.collectives = leaf(entry.path);
          if (collectives.size === 0) collectives = calls;
          if (matrix.size === 0) matrix = bySource(read.matrix);
          if (groups.length === 0) groups = groupsOf(read.groups);
          if (read.slow.length > 0) notes.push({ text: NOTE.slow, params: { ranks: counted(read.slow) } });
          const { status, note, params } = databaseRecord(read, read.steps.size === 0 && calls.size === 0);
          record(status, 'cluster database', note, params);
        }
      }
    } catch (error) {
      record('refused', 'unreadable', NOTE.unreadable, reasonParams(error));
    }
  }
  const ranks = [...new Set([...steps.keys(), ...collectives.keys()])].sort((a, b) => a - b);
  const captures = ranks.map((rank, i) => {
    const own = collectives.get(rank) ?? null;
    const originUs = firstCommunicationUs(own) ?? 0;
    const links = matrix.has(rank) ? readMatrix(matrix.get(rank), true) : null;
    return {
      ...capture(cluster.folder, rank, originUs, steps.get(rank) ?? [], readCommunication(own, originUs), groups, inputs, files),
      links: linkSummary(links === null ? null : { ids: new Map(), links, packets: [] }, readPackets(own)),
      // Said once, of all ranks.
      notes: i === 0 ? notes : [],
    };
  });
  return { captures, inputs };
}

function databaseRecord(
  read: ClusterDatabase,
  isEmpty: boolean,
): { status: InputRecord['status']; note: L10n | null; params?: Message['params'] } {
  const { damage, negative, unknown } = read;
  if (damage.length > 0) {
    const params = { tables: damage.map((d) => d.table), ...reasonParams(damage[0]!.why) };
    return { status: isEmpty ? 'refused' : 'partial', note: NOTE.damaged, params };
  }
  if (isEmpty && read.slow.length > 0) return { status: 'refused', note: NOTE.onlySlow, params: { ranks: counted(read.slow) } };
  if (isEmpty) return { status: 'refused', note: NOTE.noTable };
  if (read.isCut) return { status: 'partial', note: NOTE.sample };
  if (negative !== null) return { status: 'partial', note: NOTE.negative, params: { column: negative } };
  if (unknown.length === 0) return { status: 'used', note: null };
  return { status: 'used', note: NOTE.unknownTables, params: { tables: unknown.slice(0, MAX_NAMED) } };
}

/** `1 (137 ×), 2 (129 ×)` */
function counted(slow: ClusterDatabase['slow']): string {
  const named = slow.slice(0, MAX_NAMED).map(({ rank, count }) => `${rank} (${count} ×)`);
  return slow.length > MAX_NAMED ? `${named.join(', ')}, …` : named.join(', ');
}

async function json(entry: ProfileEntry): Promise<unknown> {
  const bytes = await readWhole(entry, MAX_JSON);
  if (bytes === null) throw new Error('larger than such a file can be');
  return JSON.parse(bytes.toString('utf8').replace(/^\ufeff/, ''));
}

function capture(
  folder: string,
  rank: number,
  originUs: number,
  stepTrace: readonly StepTraceRow[],
  collectives: readonly CollectiveRecord[],
  groups: readonly GroupInfo[],
  inputs: readonly InputRecord[],
  files: { readonly steps: string; readonly collectives: string },
): RankCapture {
  return {
    folder,
    rank,
    device: null,
    hardware: null,
    originUs,
    files: { trace: 'trace_view.json', kernels: 'kernel_details.csv', ...files },
    names: createInterner(),
    settings: EMPTY_SETTINGS,
    groups: groups.filter((g) => g.ranks.includes(rank)),
    worldSize: null,
    parallel: {},
    stepTrace,
    trace: null,
    kernels: null,
    collectives,
    links: null,
    apis: [],
    operators: [],
    hostOps: [],
    memory: null,
    inputs,
    notes: [],
    damage: [],
  };
}
