import { messageOf } from '../../base/errors.ts';
import type { StepTraceRow } from '../../model/capture.ts';
import type { Database, Row, Table } from '../database.ts';

/**
 * cluster_analysis.db of `msprof-analyze`, turned into what its text form holds: the rest of the reading is the same for both.
 * Current versions write `Cluster…` tables, older and simplified ones keep the names of the ranks' own `analysis.db` and add a rank.
 */
export interface ClusterDatabase {
  readonly steps: ReadonlyMap<number, StepTraceRow[]>;
  /** A column that held a negative time; such a cell counts as missing. */
  readonly negative: string | null;
  /** As cluster_communication.json, cluster_communication_matrix.json and communication_group.json. */
  readonly communication: unknown;
  readonly matrix: unknown;
  readonly groups: unknown;
  /** Ranks that stand out in how often they made the others wait, by the tool's own count; most first. */
  readonly slow: readonly { readonly rank: number; readonly count: number }[];
  /** Tables that no version of the tool is known to write. */
  readonly unknown: readonly string[];
  /** Rows left out because a table is larger than any cluster's. */
  readonly isCut: boolean;
  /** Tables that could not be read to the end. */
  readonly damage: readonly { readonly table: string; readonly why: string }[];
}

const MAX_STEPS = 1_000_000;
const MAX_CALLS = 1_000_000;
const MAX_PACKETS = 4_000_000;
const MAX_GROUPS = 10_000;
const MAX_RANK = 10_000_000;
/** A group of all ranks of a large job, as text. */
const MAX_RANK_SET = 1 << 20;

const STEPS = ['ClusterStepTraceTime', 'StepTraceTime'];
const TIMES = ['ClusterCommunicationTime', 'ClusterCommAnalyzerTime', 'CommAnalyzerTime'];
const PACKETS = ['ClusterCommunicationBandwidth', 'ClusterCommAnalyzerBandwidth', 'CommAnalyzerBandwidth'];
const MATRIX = ['ClusterCommunicationMatrix', 'ClusterCommAnalyzerMatrix', 'CommAnalyzerMatrix'];
const GROUPS = ['CommunicationGroupMapping', 'CommunicationGroup', 'ClusterCommunicationGroup'];
const SLOW = ['SlowRank'];
/** Results of recipes: figures over ranks that the rules compute themselves. */
const KNOWN = new Set([
  ...[...STEPS, ...TIMES, ...PACKETS, ...MATRIX, ...GROUPS],
  ...['HostInfo', 'RankDeviceMap', 'ClusterBaseInfo', 'ClusterTimeSummary', 'ClusterTimeCompareSummary', 'CommunicationBottleneck'],
  ...['ComputeOpAllRankStats', 'ComputeOpPerRankStatsByOpType', 'ComputeOpPerRankStatsByOpName', 'CannApiSum', 'CannApiSumRank'],
  ...['HcclAllRankStats', 'HcclPerRankStats', 'HcclTopOpStats', 'HcclGroupNameMap', 'ModuleStatistic', 'OperatorMFU', 'ModuleMFU'],
  ...['MSTXAllFrameworkStats', 'MSTXAllCannStats', 'MSTXAllDeviceStats', 'MSTXMarkStats', 'SlowLinkSum', 'SlowLinkOps', 'SlowRank'],
  ...['EPTokensSummary', 'TopEPTokensInfo', 'FreeAnalysis', 'FreeInfo', 'FreqAnalysis', 'AbnormalFrequencyRanks', 'FreeFrequencyRanks'],
  ...['ComputationalOperatorMaskingLinearity', 'StringIds', 'STRING_IDS', 'COMMUNICATION_OP', 'StepTaskInfo', 'PPChart'],
]);

const num = (value: unknown): number => (typeof value === 'number' && Math.abs(value) <= 1e18 ? value : Number.NaN);

export function readClusterDatabase(db: Database): ClusterDatabase {
  let isCut = false;
  const cutAt = (limit: number, rows: number): void => {
    isCut ||= rows >= limit;
  };
  const damage: { table: string; why: string }[] = [...db.broken];
  const guard = (names: readonly string[], read: (table: Table) => void): void => {
    const name = names.find((n) => db.names.includes(n));
    try {
      const table = name === undefined ? null : db.table(name);
      if (table !== null) read(table);
    } catch (error) {
      damage.push({ table: name ?? '', why: messageOf(error).slice(0, 200) });
    }
  };
  const steps: Steps = { rows: new Map(), negative: null };
  const calls: Calls = bare();
  const matrix: Matrix = bare();
  const groups: unknown[] = [];
  guard(STEPS, (table) => readSteps(db, table, steps, cutAt));
  guard(TIMES, (table) => readTimes(db, table, calls, cutAt));
  guard(PACKETS, (table) => readPackets(db, table, calls, cutAt));
  guard(MATRIX, (table) => readMatrix(db, table, matrix, cutAt));
  guard(GROUPS, (table) => readGroups(db, table, groups));
  const counts: { rank: number; count: number }[] = [];
  guard(SLOW, (table) => readSlowRanks(db, table, counts));
  return {
    steps: steps.rows,
    negative: steps.negative,
    communication: { all: calls },
    matrix: { all: matrix },
    groups: { comm_group_parallel_info: groups },
    slow: standingOut(counts),
    unknown: db.names.filter((name) => !KNOWN.has(name)),
    isCut,
    damage,
  };
}

/** Fewer are chance. */
const MIN_SLOW = 10;

function readSlowRanks(db: Database, table: Table, counts: { rank: number; count: number }[]): void {
  const rank = ['rankId', 'rank_id'];
  const count = ['slowAffectCount', 'slow_affect_count'];
  if (!rank.some((c) => table.has(c)) || !count.some((c) => table.has(c))) return;
  for (const row of db.rows(`SELECT ${integer(table, ...rank)}, ${integer(table, ...count)} FROM "${table.name}" LIMIT ${MAX_STEPS}`)) {
    const [id, times] = [num(row[0]), num(row[1])];
    if (id >= 0 && id <= MAX_RANK && times >= 0) counts.push({ rank: id, count: times });
  }
}

/**
 * Counts of at least half the largest. Distances from the mean in deviations say nothing of a few ranks: of four, two slow ones lie one
 * deviation off. When most ranks are slow none stands out.
 */
function standingOut(counts: readonly { rank: number; count: number }[]): { rank: number; count: number }[] {
  const most = counts.reduce((max, c) => Math.max(max, c.count), 0);
  const slow = counts.filter((c) => c.count >= most / 2);
  return most < MIN_SLOW || 2 * slow.length > counts.length ? [] : slow.sort((a, b) => b.count - a.count || a.rank - b.rank);
}

type Cut = (limit: number, rows: number) => void;
type Steps = { readonly rows: Map<number, StepTraceRow[]>; negative: string | null };
type Matrix = Record<string, Record<string, Record<string, unknown>>>;

/** `step50`, `50` or nothing, as the key of the text form. */
function stepKey(value: unknown): string {
  return `step${/^(?:step)?(\d{1,9})$/.exec(String(value ?? '').trim())?.[1] ?? ''}`;
}

const text = (table: Table, length: number, ...columns: string[]): string => `substr(CAST(${table.sql(...columns)} AS TEXT), 1, ${length})`;
const integer = (table: Table, ...columns: string[]): string => `CAST(${table.sql(...columns)} AS INTEGER)`;

/** µs in spite of the manual, as in the csv. Rows of stages are maxima over ranks. */
function readSteps(db: Database, table: Table, steps: Steps, cut: Cut): void {
  const rank = ['index', 'rank_id', 'rankId'];
  if (!rank.some((c) => table.has(c))) return;
  const columns = ['computing', 'communication_not_overlapped', 'overlapped', 'communication', 'free', 'stage', 'bubble', 'preparing'];
  const query = `SELECT ${[text(table, 20, 'step'), text(table, 20, 'type'), text(table, 20, ...rank), ...columns.map((c) => table.sql(c))].join(', ')} FROM "${table.name}" LIMIT ${MAX_STEPS}`;
  let line = 0;
  for (const row of db.rows(query)) {
    line++;
    const index = String(row[2] ?? '').trim();
    if (row[1] === 'stage' || !/^\d{1,7}$/.test(index)) continue;
    const ms = (column: number): number => {
      const us = num(row[3 + column]);
      if (us >= 0) return us / 1000;
      if (us < 0) steps.negative ??= columns[column]!;
      return Number.NaN;
    };
    const id = stepKey(row[0]).slice(4);
    const preparing = ms(7);
    const own = steps.rows.get(Number(index)) ?? [];
    steps.rows.set(Number(index), own);
    own.push({
      step: id === '' ? null : Number(id),
      computing: ms(0),
      exposed: ms(1),
      overlapped: ms(2),
      communication: ms(3),
      free: ms(4),
      stage: ms(5),
      bubble: ms(6),
      preparing: Number.isNaN(preparing) ? null : preparing,
      line,
    });
  }
  cut(MAX_STEPS, line);
}

interface Link {
  'Transit Size(MB)': number;
  'Transit Time(ms)': number;
  'Bandwidth(GB/s)': number;
  'Size Distribution': Record<string, number[]>;
}
interface Call {
  'Communication Time Info'?: Record<string, number>;
  'Communication Bandwidth Info'?: Record<string, Link>;
}
/** step → operation@group → rank. */
type Calls = Record<string, Record<string, Record<string, Call>>>;

const bare = <T>(): Record<string, T> => Object.create(null) as Record<string, T>;

/** The value of a key, made when it is new. Names come from the file: the records have no prototype. */
function entryOf<T>(record: Record<string, T>, key: string, make: () => T): T {
  let value = record[key];
  if (value === undefined) {
    value = make();
    record[key] = value;
  }
  return value;
}

function callKey(name: string, group: unknown): string {
  return name.includes('@') || typeof group !== 'string' || group === '' ? name : `${name}@${group}`;
}

function callOf(calls: Calls, [step, name, group, rank]: Row): Call | null {
  if (typeof name !== 'string' || name === '' || typeof rank !== 'number' || rank < 0 || rank > MAX_RANK) return null;
  const ops = entryOf(calls, stepKey(step), bare<Record<string, Call>>);
  return entryOf(entryOf(ops, callKey(name, group), bare<Call>), String(rank), (): Call => ({}));
}

/** Rows of single calls with the columns that name them, then `more`; sums over calls are left out. */
function callRows(db: Database, table: Table, more: readonly string[], limit: number): Iterable<Row> {
  if (!table.has('hccl_op_name') || !(table.has('rank_id') || table.has('rankId'))) return [];
  const columns = [
    text(table, 20, 'step'),
    text(table, 300, 'hccl_op_name'),
    text(table, 40, 'group_name'),
    integer(table, 'rank_id', 'rankId'),
    ...more,
  ];
  return db.rows(`SELECT ${columns.join(', ')} FROM "${table.name}" WHERE ${table.sql('hccl_op_name')} NOT LIKE 'Total%' LIMIT ${limit}`);
}

function readTimes(db: Database, table: Table, calls: Calls, cut: Cut): void {
  const figures = [
    ['start_timestamp'],
    ['elapsed_time', 'elapse_time'],
    ['transit_time'],
    ['wait_time'],
    ['synchronization_time'],
    ['idle_time'],
  ];
  let rows = 0;
  for (const row of callRows(
    db,
    table,
    figures.map((c) => table.sql(...c)),
    MAX_CALLS,
  )) {
    rows++;
    const call = callOf(calls, row);
    if (call === null) continue;
    call['Communication Time Info'] = {
      'Start Timestamp(us)': num(row[4]),
      'Elapse Time(ms)': num(row[5]),
      'Transit Time(ms)': num(row[6]),
      'Wait Time(ms)': num(row[7]),
      'Synchronization Time(ms)': num(row[8]),
      'Idle Time(ms)': num(row[9]),
    };
  }
  cut(MAX_CALLS, rows);
}

/** One row for each size of package: the totals of a link repeat in each. */
function readPackets(db: Database, table: Table, calls: Calls, cut: Cut): void {
  // The size is text in some versions.
  const size = `CASE WHEN ${table.sql('package_size')} IS NOT NULL THEN CAST(${table.sql('package_size')} AS REAL) END`;
  const figures = [
    ...['transit_size', 'transit_time', 'bandwidth'].map((c) => table.sql(c)),
    size,
    ...['count', 'total_duration'].map((c) => table.sql(c)),
  ];
  let rows = 0;
  for (const row of callRows(db, table, [text(table, 20, 'band_type', 'transport_type'), ...figures], MAX_PACKETS)) {
    rows++;
    const call = callOf(calls, row);
    if (call === null || typeof row[4] !== 'string') continue;
    call['Communication Bandwidth Info'] ??= bare();
    const link = entryOf(call['Communication Bandwidth Info'], row[4], () => ({
      'Transit Size(MB)': num(row[5]),
      'Transit Time(ms)': num(row[6]),
      'Bandwidth(GB/s)': num(row[7]),
      'Size Distribution': bare<number[]>(),
    }));
    const mb = num(row[8]);
    if (!Number.isNaN(mb)) link['Size Distribution'][String(mb)] = [num(row[9]), num(row[10])];
  }
  cut(MAX_PACKETS, rows);
}

function readMatrix(db: Database, table: Table, steps: Matrix, cut: Cut): void {
  if (!table.has('src_rank') || !table.has('dst_rank')) return;
  const columns = [
    text(table, 20, 'step'),
    text(table, 300, 'hccl_op_name'),
    text(table, 40, 'group_name'),
    integer(table, 'src_rank'),
    integer(table, 'dst_rank'),
    text(table, 20, 'transport_type'),
    text(table, 300, 'op_name'),
    ...['transit_size', 'transit_time', 'bandwidth'].map((c) => table.sql(c)),
  ];
  let rows = 0;
  const query = `SELECT ${columns.join(', ')} FROM "${table.name}" WHERE ${table.sql('hccl_op_name')} NOT LIKE 'Total%' LIMIT ${MAX_CALLS}`;
  for (const row of db.rows(query)) {
    rows++;
    const [step, name, group, source, target, transport, op] = row;
    if (typeof name !== 'string' || typeof source !== 'number' || typeof target !== 'number' || source < 0 || target < 0) continue;
    const ops = entryOf(steps, stepKey(step), bare<Record<string, unknown>>);
    entryOf(ops, callKey(name, group), bare<unknown>)[`${source}-${target}`] = {
      'Transport Type': transport,
      'Transit Size(MB)': num(row[7]),
      'Transit Time(ms)': num(row[8]),
      'Bandwidth(GB/s)': num(row[9]),
      'Op Name': op,
    };
  }
  cut(MAX_CALLS, rows);
}

/** `rank_set` is text like `(0,1,2,3)`. */
function readGroups(db: Database, table: Table, groups: unknown[]): void {
  if (!table.has('rank_set')) return;
  const columns = [text(table, MAX_RANK_SET, 'rank_set'), ...['group_name', 'group_id', 'pg_name'].map((c) => text(table, 500, c))];
  for (const [ranks, name, id, role] of db.rows(`SELECT ${columns.join(', ')} FROM "${table.name}" LIMIT ${MAX_GROUPS}`)) {
    if (typeof ranks !== 'string') continue;
    groups.push({ rank_set: (ranks.match(/\d{1,7}/g) ?? []).map(Number), group_name: name, group_id: id, pg_name: role });
  }
}
