import type { Instant } from '../../base/decimal.ts';
import type { Interner } from '../../base/interner.ts';
import type { MemoryRecorder } from '../memory-recorder.ts';
import { type CsvRow, cellInstant, cellNumber, cellText, findColumn, scanCsv } from '../scan-csv.ts';
import type { Origin } from './origin.ts';

/** The files say KB and MB and mean KiB and MiB: the same capture's database holds the bytes. */
const KB = 1 << 10;
const MB = 1 << 20;

function sizeIn(unit: number): (row: CsvRow, column: number) => number {
  return (row, column) => (cellNumber(row, column) ?? Number.NaN) * unit;
}

const kilobytes = sizeIn(KB);
const megabytes = sizeIn(MB);

/** Something about a cell, worked out once for each text it holds: there are few of them and millions of rows. */
function once<T>(names: Interner, work: (text: string) => T, missing: T): (row: CsvRow, column: number) => T {
  const known = new Map<number, T>();
  return (row, column) => {
    if (column < 0 || column >= row.count) return missing;
    const id = names.bytes(row.buf, row.cells[column * 2]!, row.cells[column * 2 + 1]!);
    let value = known.get(id);
    if (value === undefined) {
      const text = cellText(row, column);
      value = text === null ? missing : work(text);
      known.set(id, value);
    }
    return value;
  };
}

/** `NPU:3` */
function deviceOf(text: string): number {
  const found = /(\d{1,4})\s*$/.exec(text);
  return found === null ? -1 : Number(found[1]);
}

/** memory_record.csv: what each allocator holds, one row per change. */
export async function readMemoryRecord(
  chunks: AsyncIterable<Buffer>,
  origin: Origin,
  names: Interner,
  recorder: MemoryRecorder,
): Promise<number> {
  const instant: Instant = { us: 0, ns: 0 };
  const componentOf = once<string>(names, (text) => text.slice(0, 100), '');
  const ofDevice = once(names, deviceOf, -1);
  let rows = 0;
  await scanCsv(chunks, (header) => {
    const component = findColumn(header, 'Component');
    const at = findColumn(header, 'Timestamp(us)');
    const allocated = findColumn(header, 'Total Allocated(MB)');
    const reserved = findColumn(header, 'Total Reserved(MB)');
    const active = findColumn(header, 'Total Active(MB)');
    const device = findColumn(header, 'Device Type', 'Device');
    if (component < 0 || reserved < 0) return null;
    return (row) => {
      const name = componentOf(row, component);
      if (name === '') return;
      rows++;
      recorder.record({
        component: name,
        device: ofDevice(row, device),
        at: cellInstant(row, at, instant) ? origin.relative(instant) : Number.NaN,
        allocated: megabytes(row, allocated),
        reserved: megabytes(row, reserved),
        active: megabytes(row, active),
      });
    };
  });
  return rows;
}

/** operator_memory.csv: one row per block, with the operator that asked for it. */
export async function readOperatorMemory(
  chunks: AsyncIterable<Buffer>,
  origin: Origin,
  names: Interner,
  recorder: MemoryRecorder,
): Promise<number> {
  const instant: Instant = { us: 0, ns: 0 };
  const nameOf = once<string>(names, (text) => text.slice(0, 500), '');
  let rows = 0;
  await scanCsv(chunks, (header) => {
    const name = findColumn(header, 'Name');
    const size = findColumn(header, 'Size(KB)');
    const from = findColumn(header, 'Allocation Time(us)');
    const to = findColumn(header, 'Release Time(us)');
    const allocated = findColumn(header, 'Allocation Total Allocated(MB)');
    if (name < 0 || size < 0 || from < 0) return null;
    const at = (row: CsvRow, column: number): number => (cellInstant(row, column, instant) ? origin.relative(instant) : Number.NaN);
    return (row) => {
      rows++;
      recorder.block(nameOf(row, name), kilobytes(row, size), at(row, from), at(row, to), megabytes(row, allocated));
    };
  });
  return rows;
}

/** npu_module_mem.csv: what the driver's modules hold, sampled. */
export async function readModuleMemory(chunks: AsyncIterable<Buffer>, names: Interner, recorder: MemoryRecorder): Promise<number> {
  const nameOf = once<string>(names, (text) => text.slice(0, 100), '');
  let rows = 0;
  await scanCsv(chunks, (header) => {
    const component = findColumn(header, 'Component');
    const reserved = findColumn(header, 'Total Reserved(MB)', 'Total Reserved(KB)');
    if (component < 0 || reserved < 0) return null;
    const size = /\(KB\)/i.test(header[reserved]!) ? kilobytes : megabytes;
    return (row) => {
      rows++;
      recorder.module(nameOf(row, component), size(row, reserved));
    };
  });
  return rows;
}
