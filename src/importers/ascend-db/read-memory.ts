import type { TraceTables } from '../../model/capture.ts';
import type { Database, Table } from '../database.ts';
import { createMemoryRecorder, type MemoryRecorder } from '../memory-recorder.ts';
import type { DatabaseClock } from './clock.ts';
import type { Strings } from './strings.ts';

export interface MemoryInput {
  readonly db: Database;
  readonly clock: DatabaseClock;
  readonly strings: Strings;
  readonly device: number | null;
}

const number = (value: unknown): number => (typeof value === 'number' ? value : Number.NaN);
const integer = (value: unknown): number => (typeof value === 'number' && Number.isInteger(value) ? value : -1);

/** The memory tables of the database: those of the framework, and the samples of the driver. Sizes are bytes. */
export function readMemory(
  input: MemoryInput,
  steps: TraceTables['steps'],
  guard: (table: string, read: () => void) => unknown,
): MemoryRecorder {
  const recorder = createMemoryRecorder(steps);
  guard('MEMORY_RECORD', () => readRecords(input, recorder));
  guard('OP_MEMORY', () => readBlocks(input, recorder));
  guard('NPU_MEM', () => readSamples(input, recorder));
  guard('NPU_MODULE_MEM', () => readModules(input, recorder));
  return recorder;
}

/** Samples of other devices are left out. The framework's own tables number the devices as the process sees them, from 0. */
function ofDevice({ device }: MemoryInput, table: Table): string {
  return device === null || !table.has('deviceId') ? '' : ` WHERE ${table.sql('deviceId')} = ${device}`;
}

function readRecords(input: MemoryInput, recorder: MemoryRecorder): void {
  const { db, clock, strings } = input;
  const table = db.table('MEMORY_RECORD');
  if (table === null || !table.has('component') || !table.has('timestamp')) return;
  const columns = [
    table.sql('component'),
    clock.sql(table, 'timestamp'),
    ...['totalAllocated', 'totalReserved', 'totalActive', 'deviceId'].map((c) => table.sql(c)),
  ];
  for (const row of db.rows(`SELECT ${columns.join(', ')} FROM "MEMORY_RECORD"`)) {
    recorder.record({
      component: (strings.text(row[0]) ?? '').slice(0, 100),
      device: integer(row[5]),
      at: number(row[1]),
      allocated: number(row[2]),
      reserved: number(row[3]),
      active: number(row[4]),
    });
  }
}

function readBlocks(input: MemoryInput, recorder: MemoryRecorder): void {
  const { db, clock, strings } = input;
  const table = db.table('OP_MEMORY');
  if (table === null || !table.has('name') || !table.has('allocationTime')) return;
  const columns = [
    table.sql('name'),
    table.sql('size'),
    clock.sql(table, 'allocationTime'),
    table.has('releaseTime') ? clock.sql(table, 'releaseTime') : 'NULL',
    table.sql('allocationTotalAllocated'),
  ];
  for (const row of db.rows(`SELECT ${columns.join(', ')} FROM "OP_MEMORY"`)) {
    recorder.block((strings.text(row[0]) ?? '').slice(0, 500), number(row[1]), number(row[2]), number(row[3]), number(row[4]));
  }
}

/** NPU_MEM samples the whole process (`app`) and the whole device. */
function readSamples(input: MemoryInput, recorder: MemoryRecorder): void {
  const { db, clock, strings } = input;
  const table = db.table('NPU_MEM');
  if (table === null || !table.has('type') || !table.has('timestampNs')) return;
  const columns = [table.sql('type'), clock.sql(table, 'timestampNs'), table.sql('hbm'), table.sql('ddr'), table.sql('deviceId')];
  for (const row of db.rows(`SELECT ${columns.join(', ')} FROM "NPU_MEM"${ofDevice(input, table)}`)) {
    const component = (strings.text(row[0]) ?? '').toUpperCase();
    if (component !== 'APP' && component !== 'DEVICE') continue;
    const reserved = Math.max(number(row[2]) || 0, number(row[3]) || 0);
    recorder.record({ component, device: integer(row[4]), at: number(row[1]), allocated: Number.NaN, reserved, active: Number.NaN });
  }
}

function readModules(input: MemoryInput, recorder: MemoryRecorder): void {
  const { db } = input;
  const table = db.table('NPU_MODULE_MEM');
  const names = db.table('ENUM_MODULE');
  if (table === null || names === null || !table.has('moduleId') || !table.has('totalReserved') || !names.has('name')) return;
  const nameOf = new Map<unknown, string>();
  for (const [id, name] of db.rows('SELECT "id", substr("name", 1, 100) FROM "ENUM_MODULE" LIMIT 1000')) {
    if (typeof name === 'string') nameOf.set(id, name);
  }
  const query = `SELECT ${table.sql('moduleId')}, max(${table.sql('totalReserved')}) FROM "NPU_MODULE_MEM"${ofDevice(input, table)} GROUP BY 1 LIMIT 1000`;
  for (const [id, peak] of db.rows(query)) {
    const name = nameOf.get(id);
    if (name !== undefined) recorder.module(name, number(peak));
  }
}
