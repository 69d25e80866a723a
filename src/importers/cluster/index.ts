import { messageOf } from '../../base/errors.ts';
import { createInterner } from '../../base/interner.ts';
import type { CollectiveRecord, GroupInfo, InputRecord, RankCapture, StepTraceRow } from '../../model/capture.ts';
import type { L10n, Message } from '../../model/lang.ts';
import { type ProfileEntry, readWhole } from '../../sources/source.ts';
import { leaf } from '../rank-folders.ts';
import { firstCommunicationUs, readCommunication } from '../read-communication.ts';
import { EMPTY_SETTINGS } from '../settings.ts';
import { scanStepTrace } from '../step-trace.ts';
import { asUtf8 } from '../text-encoding.ts';
import type { ClusterFolder } from './find.ts';
import { byRank, groupsOf } from './split.ts';

const STEPS = 'cluster_step_trace_time.csv';
const COLLECTIVES = 'cluster_communication.json';
const GROUPS = 'communication_group.json';
const MAX_JSON = 512 << 20;
const MAX_RANKS = 200_000;
const NOTE = {
  notNeeded: { en: 'not needed by any check of this version', zh: '当前版本的检查项不需要' },
  database: {
    en: 'not read; run `msprof-analyze cluster` with `--export_type text`, or upload the rank folders',
    zh: '不读取；以 `--export_type text` 执行 `msprof-analyze cluster`，或上传各卡目录',
  },
  noRank: { en: 'holds no row of a rank: stage rows are maxima over ranks', zh: '没有任何卡的行：stage 行是各卡的最大值' },
  negative: {
    en: '{column:code} is negative in a row: that time means nothing and is left out',
    zh: '有一行的 {column:code} 为负：该时间没有意义，不使用',
  },
  unreadable: { en: 'could not be read: {why:code}', zh: '无法读取：{why:code}' },
} as const;

/** Whether a table is opened. */
export function isRead(name: string): boolean {
  return name === STEPS || name === COLLECTIVES || name === GROUPS;
}

/** Reads the tables of `cluster_analysis_output` as far as they tell of single ranks: step times, collectives, groups. */
export async function readCluster(cluster: ClusterFolder): Promise<{ captures: RankCapture[]; inputs: InputRecord[] }> {
  const inputs: InputRecord[] = [];
  const steps = new Map<number, StepTraceRow[]>();
  let collectives = new Map<number, unknown>();
  let groups: GroupInfo[] = [];
  for (const entry of cluster.entries) {
    const record = (status: InputRecord['status'], kind: string, note: L10n | null, params: Message['params'] = {}): void => {
      inputs.push({ path: entry.path, kind, bytes: entry.bytes, status, note: note === null ? null : { text: note, params } });
    };
    try {
      switch (leaf(entry.path)) {
        case STEPS: {
          const { negative } = await scanStepTrace(
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
        case GROUPS:
          groups = groupsOf(await json(entry));
          record('used', 'groups', null);
          break;
        default:
          record('ignored', 'cluster tables', leaf(entry.path).endsWith('.db') ? NOTE.database : NOTE.notNeeded);
      }
    } catch (error) {
      record('refused', 'unreadable', NOTE.unreadable, { why: messageOf(error).slice(0, 200) });
    }
  }
  const ranks = [...new Set([...steps.keys(), ...collectives.keys()])].sort((a, b) => a - b);
  const captures = ranks.map((rank) => {
    const own = collectives.get(rank) ?? null;
    const originUs = firstCommunicationUs(own) ?? 0;
    return capture(cluster.folder, rank, originUs, steps.get(rank) ?? [], readCommunication(own, originUs), groups, inputs);
  });
  return { captures, inputs };
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
): RankCapture {
  return {
    folder,
    rank,
    device: null,
    hardware: null,
    originUs,
    files: { trace: 'trace_view.json', kernels: 'kernel_details.csv', steps: STEPS, collectives: COLLECTIVES },
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
  };
}
