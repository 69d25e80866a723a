import type { CollectiveRecord, LinkSummary, PacketRow, StepTraceRow } from '../../model/capture.ts';
import type { Database } from '../database.ts';
import { createLinks, createPackets, opOfName, transportOf } from '../link-tables.ts';

const MAX_STEPS = 100_000;
/** Calls that are kept of one rank. */
export const MAX_OPS = 500_000;
const MAX_GROUPS = 10_000;
const MAX_IDS = 200_000;
const P2P = /^hcom_(send|receive|batchsendrecv)/i;

/** No time or size of a profile is larger; sums of such numbers stay finite. */
const MAX_NUMBER = 1e18;
const num = (value: unknown): number => (typeof value === 'number' && Math.abs(value) <= MAX_NUMBER ? value : Number.NaN);
/** A larger size, MB, is none. */
const MAX_MB = 1e12;
const megabytes = (value: unknown): number => (typeof value === 'number' && Math.abs(value) <= MAX_MB ? value : Number.NaN);
const cut = (value: unknown, length: number): string => (typeof value === 'string' ? value.slice(0, length) : '');

/** `step50` or `50`; empty without step marks. */
function stepOf(value: unknown): number | null {
  const found = /^(?:step)?(\d{1,9})$/.exec(String(value ?? '').trim());
  return found === null ? null : Number(found[1]);
}

/** StepTraceTime, µs in spite of the manual. With several devices the rows of `device`, else those of the first one. */
export function readStepTrace(db: Database, device: number | null): StepTraceRow[] {
  const table = db.table('StepTraceTime');
  if (table === null) return [];
  const columns = ['computing', 'communication_not_overlapped', 'overlapped', 'communication', 'free', 'stage', 'bubble', 'preparing'];
  const rows: { device: number | null; row: StepTraceRow }[] = [];
  const query = `SELECT ${table.sql('deviceId')}, CAST(${table.sql('step')} AS TEXT), ${columns.map((c) => table.sql(c)).join(', ')} FROM "StepTraceTime" LIMIT ${MAX_STEPS}`;
  for (const row of db.rows(query)) {
    const ms = (i: number): number => num(row[i]) / 1000;
    const preparing = ms(9);
    rows.push({
      device: typeof row[0] === 'number' ? row[0] : null,
      row: {
        step: stepOf(row[1]),
        computing: ms(2),
        exposed: ms(3),
        overlapped: ms(4),
        communication: ms(5),
        free: ms(6),
        stage: ms(7),
        bubble: ms(8),
        preparing: Number.isNaN(preparing) ? null : preparing,
        line: rows.length + 1,
      },
    });
  }
  const own = rows.some((r) => r.device === device) ? device : (rows[0]?.device ?? null);
  return rows.filter((r) => r.device === own).map((r) => r.row);
}

/** Earliest whole µs of CommAnalyzerTime: the rank's zero when the main database is missing. */
export function firstCollectiveUs(db: Database): number | null {
  const table = db.table('CommAnalyzerTime');
  if (table === null || !table.has('start_timestamp')) return null;
  for (const [value] of db.rows('SELECT min("start_timestamp") FROM "CommAnalyzerTime" WHERE "start_timestamp" > 0'))
    return num(value) > 0 ? Math.floor(num(value)) : null;
  return null;
}

/** CommAnalyzerTime, ms, with the sizes of CommAnalyzerBandwidth, which repeats them in every row of a package size. */
export function readCollectives(db: Database, originUs: number): CollectiveRecord[] {
  const table = db.table('CommAnalyzerTime');
  if (table === null || !table.has('hccl_op_name')) return [];
  const sizes = readSizes(db);
  const columns = ['start_timestamp', 'elapse_time', 'transit_time', 'wait_time', 'synchronization_time', 'idle_time'];
  const out: CollectiveRecord[] = [];
  const text = ['hccl_op_name', 'group_name', 'step', 'type'].map((c) => `CAST(${table.sql(c)} AS TEXT)`);
  const query = `SELECT ${[...text, ...columns.map((c) => table.sql(c))].join(', ')} FROM "CommAnalyzerTime" LIMIT ${MAX_OPS}`;
  for (const row of db.rows(query)) {
    const key = cut(row[0], 300);
    if (key === '' || key.startsWith('Total')) continue;
    const at = key.lastIndexOf('@');
    const name = (at === -1 ? key : key.slice(0, at)).slice(0, 200);
    const start = num(row[4]);
    out.push({
      step: stepOf(row[2]),
      kind: row[3] === 'p2p' || (row[3] !== 'collective' && P2P.test(name)) ? 'p2p' : 'collective',
      name,
      group: cut(row[1], 40),
      start: Number.isNaN(start) ? Number.NaN : (start - originUs) * 1000,
      elapsedMs: num(row[5]),
      transitMs: num(row[6]),
      waitMs: num(row[7]),
      synchronizationMs: num(row[8]),
      idleMs: num(row[9]),
      ...(sizes.get(sizeKey(key, row[1], row[2])) ?? NOTHING_MOVED),
    });
  }
  return out;
}

function sizeKey(name: unknown, group: unknown, step: unknown): string {
  return `${String(step)}/${String(group)}/${String(name)}`;
}

type Moved = Pick<CollectiveRecord, 'sizeMb' | 'sdmaMs' | 'rdmaMs' | 'rdmaMb'>;
const NOTHING_MOVED: Moved = { sizeMb: 0, sdmaMs: 0, rdmaMs: 0, rdmaMb: 0 };

function readSizes(db: Database): Map<string, Moved> {
  const sizes = new Map<string, Moved>();
  const table = db.table('CommAnalyzerBandwidth');
  if (table === null) return sizes;
  const text = ['hccl_op_name', 'group_name', 'step', 'transport_type'].map((c) => `CAST(${table.sql(c)} AS TEXT)`);
  const figures = ['transit_size', 'transit_time'].map((c) => table.sql(c));
  for (const row of db.rows(`SELECT ${[...text, ...figures].join(', ')} FROM "CommAnalyzerBandwidth" LIMIT ${20 * MAX_OPS}`)) {
    const size = megabytes(row[4]);
    if ((row[3] !== 'SDMA' && row[3] !== 'RDMA') || !(size > 0)) continue;
    const key = sizeKey(cut(row[0], 300), row[1], row[2]);
    const known = sizes.get(key) ?? NOTHING_MOVED;
    const sdmaMb = known.sizeMb - known.rdmaMb;
    if (size <= (row[3] === 'SDMA' ? sdmaMb : known.rdmaMb)) continue;
    const ms = num(row[5]);
    sizes.set(
      key,
      row[3] === 'SDMA'
        ? { ...known, sizeMb: known.rdmaMb + size, sdmaMs: ms }
        : { ...known, sizeMb: sdmaMb + size, rdmaMb: size, rdmaMs: ms },
    );
  }
  return sizes;
}

/** CommAnalyzerBandwidth by size of package: packets of all operations. SDMA repeats what HCCS, PCIe and SIO hold. */
export function readPackets(db: Database): PacketRow[] {
  const packets = createPackets();
  const table = db.table('CommAnalyzerBandwidth');
  if (table === null) return [];
  const figures = ['package_size', 'count', 'total_duration'].map((c) => table.sql(c));
  const query = `SELECT substr(CAST(${table.sql('hccl_op_name')} AS TEXT), 1, 5), CAST(${table.sql('transport_type')} AS TEXT), ${figures.join(', ')} FROM "CommAnalyzerBandwidth" LIMIT ${20 * MAX_OPS}`;
  for (const row of db.rows(query)) {
    const transport = row[1] === 'SDMA' || row[0] === 'Total' ? null : transportOf(row[1]);
    if (transport !== null) packets.add(transport, Math.round(megabytes(row[2]) * 1e6), num(row[3]), num(row[4]));
  }
  return packets.rows();
}

/** CommAnalyzerMatrix: its links, and which rank numbers they name, by group hash. */
export function readLinks(db: Database): LinkSummary | null {
  const table = db.table('CommAnalyzerMatrix');
  if (table === null) return null;
  const ids = new Map<string, Set<number>>();
  const text = ['group_name', 'src_rank', 'dst_rank'].map((c) => `CAST(${table.sql(c)} AS TEXT)`);
  for (const [name, source, target] of db.rows(`SELECT DISTINCT ${text.join(', ')} FROM "CommAnalyzerMatrix" LIMIT ${20 * MAX_OPS}`)) {
    const group = cut(name, 40);
    let members = ids.get(group);
    if (members === undefined) {
      if (ids.size >= MAX_GROUPS) continue;
      members = new Set();
      ids.set(group, members);
    }
    for (const end of [source, target]) {
      if (typeof end === 'string' && /^\d{1,7}$/.test(end) && members.size < MAX_IDS) members.add(Number(end));
    }
  }
  if (ids.size === 0) return null;
  return { ids: new Map([...ids].map(([group, set]) => [group, [...set].sort((a, b) => a - b)])), links: readMatrix(db), packets: [] };
}

/** Rows `allreduce-top1` name a call, rows `allreduce-total` sum over all calls of their kind. */
function readMatrix(db: Database): LinkSummary['links'] {
  const links = createLinks(false);
  const table = db.table('CommAnalyzerMatrix');
  if (table === null) return links.table();
  const text = ['hccl_op_name', 'group_name', 'src_rank', 'dst_rank', 'transport_type', 'op_name'].map(
    (c) => `CAST(${table.sql(c)} AS TEXT)`,
  );
  const figures = ['transit_size', 'transit_time'].map((c) => table.sql(c));
  const query = `SELECT ${[...text, ...figures].join(', ')} FROM "CommAnalyzerMatrix"`;
  /** The kind of a sum is spelt shorter than the operation; the samples beside it name that. */
  const named = new Map<string, string>();
  for (const isSum of [false, true]) {
    for (const row of db.rows(`${query} WHERE ${table.sql('hccl_op_name')} ${isSum ? '' : 'NOT '}LIKE '%-total' LIMIT ${20 * MAX_OPS}`)) {
      const transport = transportOf(row[4]);
      const [source, target] = [row[2], row[3]].map((end) => (typeof end === 'string' && /^\d{1,7}$/.test(end) ? Number(end) : -1));
      const kind = cut(row[0], 100).replace(/-(top1|middle|bottom\d|total)$/, '');
      const group = cut(row[1], 40);
      const call = isSum ? null : cut(row[5], 200) || cut(row[0], 200);
      if (transport === null || source === -1 || target === -1 || kind.startsWith('Total')) continue;
      const op = (call === null ? named.get(`${kind}@${group}`) : opOfName(call)) ?? kind.slice(0, 40);
      if (call !== null && named.size < MAX_GROUPS) named.set(`${kind}@${group}`, op);
      links.add({ group, op, source: source!, target: target!, transport, bytes: megabytes(row[6]) * 1e6, ms: num(row[7]), call });
    }
  }
  return links.table();
}
