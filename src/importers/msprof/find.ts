import type { ProfileEntry } from '../../sources/source.ts';
import { DEVICE_INFO, leaf, OLDER, parent, type RankFolder } from '../rank-folders.ts';

/** One file of `msprof --export`: kind, slice, and the numbers at the end: a time stamp, in 2022–23 device, model and iteration. */
const EXPORT = /^(msprof|op_summary|op_statistic|api_statistic)(?:_slice_(\d+))?((?:_\d+)*)\.(?:json|csv)$/;
const READ_AS: Readonly<Record<string, string>> = {
  msprof: 'trace_view.json',
  op_summary: 'kernel_details.csv',
  op_statistic: 'op_statistic.csv',
  api_statistic: 'api_statistic.csv',
};
const PROF = /^PROF_\d+_\d+_[0-9A-Za-z]+$/;
/** The export as a database, and the one of its communication; read only where there are no tables. */
const DATABASES: Readonly<Record<string, string>> = { msprof: 'ascend_pytorch_profiler.db', communication_analyzer: 'analysis.db' };
const DATABASE = /^(msprof|communication_analyzer)(?:_(\d+))?\.db(-wal)?$/;
const EXPORT_FOLDER = /^(mindstudio_profiler_output|timeline|summary|analyze)$/;
const INFO_FILE = /^info\.json\.\d+$/;
const COMMUNICATION = /^communication(_matrix)?\.json$/;

interface Exported {
  readonly entry: ProfileEntry;
  readonly kind: string;
  readonly slice: number;
  readonly stamp: string;
}

/** Finds what `msprof` exported, of any age. Each PROF folder is one rank; in old layouts each of its device folders is. */
export function findMsprof(entries: readonly ProfileEntry[]): { folders: RankFolder[]; rest: ProfileEntry[] } {
  const devices = new Set(entries.flatMap((e) => deviceRoot(e.path) ?? []));
  const byRoot = new Map<string, ProfileEntry[]>();
  for (const entry of entries) {
    const root = rootOf(entry.path, devices);
    if (root === null) continue;
    const own = byRoot.get(root);
    if (own === undefined) byRoot.set(root, [entry]);
    else own.push(entry);
  }
  const folders = [...byRoot].map(([folder, own]) => rankFolder(folder, own)).filter((f) => f !== null);
  folders.sort((a, b) => (a.folder < b.folder ? -1 : 1));
  const taken = new Set(folders.flatMap((f) => f.entries));
  return { folders, rest: entries.filter((e) => !taken.has(e)) };
}

/** `PROF_…/device_0` of `PROF_…/device_0/summary/op_summary_0_1.csv`. */
function deviceRoot(path: string): string | null {
  const folder = parent(path);
  const above = parent(folder);
  return /^(summary|timeline)$/.test(leaf(folder)) && /^device_\d+$/.test(leaf(above)) ? above : null;
}

function rootOf(path: string, devices: ReadonlySet<string>): string | null {
  const parts = path.split('/');
  const at = parts.findLastIndex((part) => PROF.test(part));
  if (at !== -1) {
    const device = parts.slice(0, at + 2).join('/');
    return devices.has(device) ? device : parts.slice(0, at + 1).join('/');
  }
  if (!EXPORT.test(leaf(path)) && !/^msprof_\d+\.db$/.test(leaf(path))) return null;
  const folder = parent(path);
  return EXPORT_FOLDER.test(leaf(folder)) ? parent(folder) : folder;
}

function rankFolder(folder: string, entries: readonly ProfileEntry[]): RankFolder | null {
  const exported = entries.flatMap((entry): Exported[] => {
    const found = EXPORT.exec(leaf(entry.path));
    if (found === null) return [];
    return [{ entry, kind: found[1]!, slice: Number(found[2] ?? -1), stamp: /_(\d{14,17})$/.exec(found[3]!)?.[1] ?? '' }];
  });
  if (!exported.some((e) => e.kind === 'msprof' || e.kind === 'op_summary')) return databaseFolder(folder, entries);
  const readAs: Record<string, string> = {};
  for (const kind of Object.keys(READ_AS)) {
    const files = exported.filter((e) => e.kind === kind);
    const chosen = new Set(newestWhole(files));
    for (const file of files) readAs[file.entry.path] = chosen.has(file) ? READ_AS[kind]! : OLDER;
  }
  const side = entries.filter((e) => INFO_FILE.test(leaf(e.path)) || COMMUNICATION.test(leaf(e.path)) || DATABASE.test(leaf(e.path)));
  for (const entry of side) if (INFO_FILE.test(leaf(entry.path))) readAs[entry.path] = DEVICE_INFO;
  const tables = exported.sort((a, b) => a.slice - b.slice || (a.entry.path < b.entry.path ? -1 : 1)).map((e) => e.entry);
  return { folder, entries: [...tables, ...side], readAs };
}

/** A PROF folder without tables: its newest database. */
function databaseFolder(folder: string, entries: readonly ProfileEntry[]): RankFolder | null {
  const databases = entries.filter((e) => DATABASE.test(leaf(e.path)));
  const readAs: Record<string, string> = {};
  for (const [kind, as] of Object.entries(DATABASES)) {
    const own = databases.filter((e) => DATABASE.exec(leaf(e.path))![1] === kind && !e.path.endsWith('-wal'));
    const stampOf = (e: ProfileEntry): number => Number(DATABASE.exec(leaf(e.path))![2] ?? 0);
    const [newest, ...older] = own.sort((a, b) => stampOf(b) - stampOf(a));
    if (newest !== undefined) readAs[newest.path] = as;
    for (const entry of older) readAs[entry.path] = OLDER;
  }
  if (!Object.values(readAs).includes(DATABASES.msprof!)) return null;
  const info = entries.filter((e) => INFO_FILE.test(leaf(e.path)));
  for (const entry of info) readAs[entry.path] = DEVICE_INFO;
  return { folder, entries: [...databases, ...info], readAs };
}

/** The files of the newest export of one kind; one with a slice missing counts only when no other is whole. */
function newestWhole(files: readonly Exported[]): Exported[] {
  const stamps = [...new Set(files.map((f) => f.stamp))].sort((a, b) => (a < b ? 1 : -1));
  const sets = stamps.map((stamp) => files.filter((f) => f.stamp === stamp));
  const whole = (set: readonly Exported[]): boolean => {
    const slices = new Set(set.filter((f) => f.slice >= 0).map((f) => f.slice));
    return slices.size === 0 || Math.max(...slices) - Math.min(...slices) + 1 === slices.size;
  };
  return sets.find(whole) ?? sets[0] ?? [];
}
