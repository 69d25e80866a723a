import type { ProfileEntry } from '../../sources/source.ts';
import { withDatabase } from '../database.ts';
import { DEVICE_INFO, databaseRank, leaf, type RankFolder, roleOf } from '../rank-folders.ts';
import { cellNumber, findColumn, scanCsv } from '../scan-csv.ts';
import { asUtf8 } from '../text-encoding.ts';

const MAX_DEVICES = 64;
/** Lanes are named at the start of a timeline, bytes. */
const HEAD = 1 << 20;
const LABEL = /"labels"\s*:\s*"NPU\s*(\d{1,4})"/g;

/**
 * One process may drive several devices: `msprof` then writes them all into the same tables. Each device is a rank of its own, whose
 * number is that of its `info.json.{device}`; −1 there means that nobody set one, and it stays unknown.
 */
export async function splitDevices(folder: RankFolder, all: readonly ProfileEntry[]): Promise<RankFolder[]> {
  const named = devicesNamed(folder, all);
  // One folder `device_k` is one device; without any, only the tables can tell.
  if (named.size === 1) return [folder];
  const devices = [...(await devicesIn(folder))].sort((a, b) => a - b);
  if (devices.length < 2) return [folder];
  const isShared = (entry: ProfileEntry): boolean => !/^communication/.test(leaf(entry.path));
  return devices.slice(0, MAX_DEVICES).map((device): RankFolder => {
    const isOthers = (e: ProfileEntry): boolean => roleOf(folder, e) === DEVICE_INFO && infoDevice(e.path) !== device;
    // Operations of all devices under one name each: nobody can tell whose they are.
    const entries = folder.entries.filter((e) => isShared(e) && !isOthers(e));
    return { ...folder, folder: `${folder.folder}/device_${device}`, entries, device };
  });
}

function infoDevice(path: string): number {
  return Number(/\.(\d{1,4})$/.exec(path)?.[1] ?? -1);
}

function devicesNamed(folder: RankFolder, all: readonly ProfileEntry[]): Set<number> {
  const devices = new Set<number>();
  const inside = folder.folder === '' ? '' : `${folder.folder}/`;
  for (const { path } of all) {
    if (!path.startsWith(inside)) continue;
    const found = /^device_(\d{1,4})\//.exec(path.slice(inside.length))?.[1];
    if (found !== undefined) devices.add(Number(found));
  }
  return devices;
}

/** Devices with rows in the tables of the export; none when they cannot be told. */
async function devicesIn(folder: RankFolder): Promise<Set<number>> {
  const ofRole = (role: string): ProfileEntry | undefined => folder.entries.find((e) => roleOf(folder, e) === role);
  const database = folder.entries.find((e) => databaseRank(roleOf(folder, e)) !== null);
  const table = ofRole('kernel_details.csv');
  const trace = ofRole('trace_view.json');
  try {
    if (table !== undefined) return await inTable(table);
    if (trace !== undefined) return await inTrace(trace);
    if (database !== undefined) return await inDatabase(database);
  } catch {
    // What is wrong with the file is told when it is read.
  }
  return new Set();
}

async function inTable(entry: ProfileEntry): Promise<Set<number>> {
  const devices = new Set<number>();
  await scanCsv(
    asUtf8(entry.open(), () => {}),
    (header) => {
      const column = findColumn(header, 'Device_id', 'Device ID');
      if (column < 0) return null;
      return (row) => {
        const device = cellNumber(row, column);
        if (device !== null && Number.isInteger(device) && device >= 0 && devices.size <= MAX_DEVICES) devices.add(device);
      };
    },
  );
  return devices;
}

async function inTrace(entry: ProfileEntry): Promise<Set<number>> {
  let head = '';
  for await (const chunk of entry.open()) {
    head += chunk.toString('latin1', 0, Math.min(chunk.length, HEAD - head.length));
    if (head.length >= HEAD) break;
  }
  return new Set(Array.from(head.matchAll(LABEL), (found) => Number(found[1])).slice(0, 10_000));
}

function inDatabase(entry: ProfileEntry): Promise<Set<number>> {
  return withDatabase(entry, null, (db) => {
    const devices = new Set<number>();
    const task = db.table('TASK');
    if (task === null || !task.has('deviceId')) return devices;
    for (const [id] of db.rows(`SELECT DISTINCT "deviceId" FROM "TASK" LIMIT ${MAX_DEVICES}`)) {
      if (typeof id === 'number' && id >= 0) devices.add(id);
    }
    return devices;
  });
}
