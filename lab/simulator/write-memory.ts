import type { Capture } from './capture.ts';
import type { Clock } from './clock.ts';
import type { MemoryTrace } from './memory.ts';
import type { TextIds, Writer } from './sqlite.ts';
import { csv } from './text.ts';

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const GE_BYTES = 75 * MIB;
const STREAM = 904_703_504;
const HCCL_SHARE = 0.6;

type Row = (string | number)[];

/** memory_record.csv: the process first, then allocator and graph engine with their running sum. */
export function memoryRecord(trace: MemoryTrace, clock: Clock): Iterable<string> {
  const device = 'NPU:0';
  const stamp = (at: number): string => `${clock.stamp(at)}\t`;
  function* rows(): Generator<Row> {
    for (const { at, reserved } of trace.samples) yield ['APP', stamp(at), '', reserved / MIB, '', '', device];
    for (const { at, allocated, reserved } of trace.changes) {
      const own = [allocated / MIB, reserved / MIB, allocated / MIB, STREAM, device];
      yield ['PTA', stamp(at), ...own];
      yield ['PTA+GE', stamp(at), allocated / MIB + 1, (reserved + GE_BYTES) / MIB, allocated / MIB, STREAM, device];
    }
    for (const { at } of trace.changes.slice(0, 2)) yield ['GE', stamp(at), 1, GE_BYTES / MIB, '', '', device];
  }
  return csv('Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type', rows(), '\r\n');
}

/** operator_memory.csv: one row per block. */
export function operatorMemory(trace: MemoryTrace, clock: Clock): Iterable<string> {
  const stamp = (at: number): string => `${clock.stamp(at)}\t`;
  function* rows(): Generator<Row> {
    for (const b of trace.blocks) {
      const mb = (bytes: number): number => bytes / MIB;
      const us = `${((b.end - b.start) / 1000).toFixed(3)}\t`;
      const [released, times, totals]: [string, Row, Row] =
        b.end === -1
          ? ['', ['', '', ''], ['', '', '']]
          : [stamp(b.end), [stamp(b.end), us, us], [mb(b.releasedAllocated), mb(b.releasedReserved), mb(b.releasedAllocated)]];
      yield [
        b.name,
        b.bytes / KIB,
        stamp(b.start),
        released,
        ...times,
        mb(b.allocated),
        mb(b.reserved),
        mb(b.allocated),
        ...totals,
        STREAM,
        'NPU:0',
      ];
    }
  }
  const totals = (what: string): string => ['Allocated', 'Reserved', 'Active'].map((kind) => `${what} Total ${kind}(MB)`).join(',');
  return csv(
    `Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),Duration(us),Active Duration(us),${totals('Allocation')},${totals('Release')},Stream Ptr,Device Type`,
    rows(),
    '\r\n',
  );
}

/** npu_module_mem.csv: samples of the driver's modules. */
export function moduleMemory(trace: MemoryTrace, clock: Clock): Iterable<string> {
  const rows = trace.samples.flatMap(({ at }): Row[] =>
    modules(trace).map(([name, bytes]) => [name, `${clock.stamp(at)}\t`, bytes / MIB, 'NPU:0']),
  );
  return csv('Component,Timestamp(us),Total Reserved(MB),Device', rows, '\r\n');
}

function modules(trace: MemoryTrace): [name: string, bytes: number][] {
  return [
    ['SLOG', 0],
    ['HCCL', trace.otherBytes * HCCL_SHARE],
    ['RUNTIME', trace.otherBytes * (1 - HCCL_SHARE)],
  ];
}

/** The same in the tables of the database. */
export function writeMemory(db: Writer, trace: MemoryTrace, capture: Capture, clock: Clock, texts: TextIds): void {
  const record = db.table(
    'MEMORY_RECORD',
    'component INTEGER, timestamp INTEGER, totalAllocated INTEGER, totalReserved INTEGER, totalActive INTEGER, streamPtr INTEGER, deviceId INTEGER',
  );
  for (const { at, allocated, reserved } of trace.changes)
    record(texts.id('PTA'), clock.id(at), allocated, reserved, allocated, STREAM, capture.device);
  for (const { at } of trace.changes.slice(0, 2)) record(texts.id('GE'), clock.id(at), MIB, GE_BYTES, 0, null, capture.device);
  const block = db.table(
    'OP_MEMORY',
    'name INTEGER, size INTEGER, allocationTime INTEGER, releaseTime INTEGER, activeReleaseTime INTEGER, duration INTEGER, activeDuration INTEGER, allocationTotalAllocated INTEGER, allocationTotalReserved INTEGER, allocationTotalActive INTEGER, releaseTotalAllocated INTEGER, releaseTotalReserved INTEGER, releaseTotalActive INTEGER, streamPtr INTEGER, deviceId INTEGER',
  );
  for (const b of trace.blocks) {
    const released = b.end !== -1;
    const end = released ? clock.id(b.end) : null;
    const lasted = released ? b.end - b.start : null;
    const after = released ? [b.releasedAllocated, b.releasedReserved, b.releasedAllocated] : [null, null, null];
    const times = [clock.id(b.start), end, end, lasted, lasted] as const;
    block(texts.id(b.name), b.bytes, ...times, b.allocated, b.reserved, b.allocated, ...after, STREAM, capture.device);
  }
  const sample = db.table('NPU_MEM', 'type INTEGER, ddr NUMERIC, hbm NUMERIC, timestampNs INTEGER, deviceId INTEGER');
  for (const { at, reserved } of trace.samples) sample(texts.id('app'), 0, reserved, clock.id(at), capture.device);
  const names = db.table('ENUM_MODULE', 'id INTEGER PRIMARY KEY, name TEXT');
  const module = db.table('NPU_MODULE_MEM', 'moduleId INTEGER, timestampNs INTEGER, totalReserved NUMERIC, deviceId INTEGER');
  for (const [id, [name, bytes]] of modules(trace).entries()) {
    names(id, name);
    for (const { at } of trace.samples) module(id, clock.id(at), bytes, capture.device);
  }
}
