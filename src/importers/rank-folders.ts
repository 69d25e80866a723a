import type { ProfileEntry } from '../sources/source.ts';

/** One rank's files inside an upload. */
export interface RankFolder {
  readonly folder: string;
  readonly entries: readonly ProfileEntry[];
  /** Files whose name does not say what they are: path → the name in the text export that they are read as. */
  readonly readAs?: Readonly<Record<string, string>> | undefined;
  /** Of tables that hold several devices, the one whose rows are this rank's. */
  readonly device?: number | undefined;
}

/** The name in the text or database export that a file of the folder is read as. */
export function roleOf(folder: Pick<RankFolder, 'readAs'>, entry: { readonly path: string }): string {
  return folder.readAs?.[entry.path] ?? leaf(entry.path);
}

/** Stands in `readAs` for a file whose place a newer export has taken. */
export const OLDER = 'older export';
/** Stands in `readAs` for `info.json.{device}` of a raw capture. */
export const DEVICE_INFO = 'device information';

const OUTPUT = 'ASCEND_PROFILER_OUTPUT';
const TEXT = /^(trace_view\.json|kernel_details\.csv|step_trace_time\.csv)$/;
const DATABASE = /^ascend_(?:pytorch|mindspore)_profiler(?:_(\d{1,7}))?\.db$/;
/** profiler_info.json, or with the rank in its name. */
export const INFO = /^profiler_info(?:_(\d{1,7}))?\.json$/;

/** The main database of a rank: its rank, -1 when the name has none; null for any other file. */
export function databaseRank(name: string): number | null {
  const found = DATABASE.exec(name);
  return found === null ? null : Number(found[1] ?? -1);
}

/** Folder of a path, '' at the root. */
export function parent(path: string): string {
  const at = path.lastIndexOf('/');
  return at === -1 ? '' : path.slice(0, at);
}

/** Whether the folder holds a text export, intact or not. */
export function hasText(folder: RankFolder): boolean {
  return folder.entries.some((e) => TEXT.test(roleOf(folder, e)));
}

/** The folders above a path, innermost first, '' last. */
export function* ancestors(path: string): Generator<string> {
  for (let folder = path; folder !== ''; ) {
    folder = parent(folder);
    yield folder;
  }
}

/** Last part of a path. */
export function leaf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/**
 * Finds the rank folders: those that hold ASCEND_PROFILER_OUTPUT, or whose own files look like its content.
 * `rest` are the entries that belong to none.
 */
export function findRankFolders(entries: readonly ProfileEntry[]): { folders: RankFolder[]; rest: ProfileEntry[] } {
  const roots = new Map<string, ProfileEntry[]>();
  const isOutput = new Set<string>();
  for (const entry of entries) {
    const name = leaf(entry.path);
    const dir = parent(entry.path);
    if (leaf(dir) === OUTPUT || TEXT.test(name) || databaseRank(name) !== null || name === 'analysis.db') isOutput.add(dir);
  }
  for (const dir of isOutput) roots.set(leaf(dir) === OUTPUT ? parent(dir) : dir, []);
  const rest: ProfileEntry[] = [];
  for (const entry of entries) {
    let dir = parent(entry.path);
    let home: ProfileEntry[] | undefined;
    for (let up = 0; up < 3; up++) {
      home = roots.get(dir);
      if (home !== undefined || dir === '') break;
      dir = parent(dir);
    }
    if (home === undefined) rest.push(entry);
    else home.push(entry);
  }
  const folders = [...roots]
    .filter(([, list]) => list.length > 0)
    .flatMap(([folder, list]) => apart(list).map((own) => ({ folder, entries: own })));
  folders.sort((a, b) => (a.folder < b.folder ? -1 : a.folder > b.folder ? 1 : 0));
  return { folders, rest };
}

/** Databases of several ranks gathered in one folder: each with the settings file of its own rank. What names no rank goes with the first. */
function apart(entries: readonly ProfileEntry[]): ProfileEntry[][] {
  const rankOf = (entry: ProfileEntry): number => databaseRank(leaf(entry.path).replace(/-wal$/, '')) ?? -1;
  const ranks = [...new Set(entries.map(rankOf))].filter((r) => r >= 0).sort((a, b) => a - b);
  if (ranks.length < 2 || hasText({ folder: '', entries })) return [[...entries]];
  const owner = (entry: ProfileEntry): number => {
    const rank = rankOf(entry) >= 0 ? rankOf(entry) : Number(INFO.exec(leaf(entry.path))?.[1] ?? -1);
    return Math.max(0, ranks.indexOf(rank));
  };
  return ranks.map((_, i) => entries.filter((e) => owner(e) === i));
}

/** Framework from the names of folder and files; null when neither tells. */
export function frameworkOf(folder: RankFolder): 'PyTorch' | 'MindSpore' | null {
  const names = [folder.folder, ...folder.entries.map((e) => e.path)];
  if (names.some((n) => /_ascend_ms(\/|$)|(^|\/)ascend_mindspore_profiler(_\d+)?\.db$/.test(n))) return 'MindSpore';
  const torch = /_ascend_pt(\/|$)|(^|\/)(ascend_pytorch_profiler(_\d+)?\.db|profiler_metadata\.json|operator_details\.csv)$/;
  return names.some((n) => torch.test(n)) ? 'PyTorch' : null;
}

/** Rank from the folder's name: rank0_ascend_pt, rank_0_ascend_pt, prof_rank_0. The last resort. */
export function rankFromFolder(folder: string): number | null {
  for (const part of folder.split('/').reverse()) {
    const found = /(?:^|[^a-z0-9])rank[_-]?(\d{1,7})(?:\D|$)/i.exec(part) ?? /^rank[_-]?(\d{1,7})/i.exec(part);
    if (found !== null) return Number(found[1]);
  }
  return null;
}
