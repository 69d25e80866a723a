import { f64 } from '../../base/columns.ts';
import type { FrequencyTable } from '../../model/capture.ts';
import { frequencyOf, MAX_MHZ } from '../frequency.ts';
import { pipeFigure } from '../kernel-groups.ts';
import type { DeviceInput, KernelColumns } from './read-device.ts';

/** TASK_PMU_INFO: one row per kernel and counter. Only the shares of the pipes are read; a row of any other counter is not even fetched. */
export function readCounters({ db }: DeviceInput, kernels: KernelColumns): void {
  const table = db.table('TASK_PMU_INFO');
  const strings = db.table('STRING_IDS');
  if (table === null || strings === null || !['globalTaskId', 'name', 'value'].every((c) => table.has(c))) return;
  if (!strings.has('id') || !strings.has('value')) return;
  const figures = new Map<number, number>();
  for (const [id, name] of db.rows(
    `SELECT "id", substr("value", 1, 60) FROM "STRING_IDS" WHERE CASE WHEN octet_length("value") <= 60 THEN "value" LIKE '%_ratio' END`,
  )) {
    const found = typeof name === 'string' ? pipeFigure(name) : null;
    if (typeof id === 'number' && Number.isInteger(id) && found !== null && !found.part) figures.set(id, found.figure);
  }
  if (figures.size === 0) return;
  const add = kernels.counters();
  const query = `SELECT "globalTaskId", "name", "value" FROM "TASK_PMU_INFO" WHERE "name" IN (${[...figures.keys()].join(', ')})`;
  for (const [task, name, value] of db.rows(query)) {
    const figure = typeof name === 'number' ? figures.get(name) : undefined;
    if (typeof task === 'number' && figure !== undefined && typeof value === 'number') add(task, figure, value);
  }
}

/** AICORE_FREQ, not in order of time. */
export function readFrequency({ db, clock, device }: DeviceInput): FrequencyTable | null {
  const table = db.table('AICORE_FREQ');
  if (table === null || !table.has('timestampNs') || !table.has('freq')) return null;
  const samples = { at: f64(16), mhz: f64(16) };
  const where = device !== null && table.has('deviceId') ? ` WHERE "deviceId" = ${device}` : '';
  for (const [at, mhz] of db.rows(`SELECT ${clock.sql(table, 'timestampNs')}, "freq" FROM "AICORE_FREQ"${where} LIMIT 1000000`)) {
    if (typeof at !== 'number' || typeof mhz !== 'number' || !(mhz > 0 && mhz <= MAX_MHZ)) continue;
    samples.at.push(at);
    samples.mhz.push(mhz);
  }
  return frequencyOf(samples);
}
