import type { ProfileEntry } from '../sources/source.ts';
import { filesRead as databasesRead } from './ascend-db/index.ts';
import { isRead as isTableRead } from './ascend-text/index.ts';
import { isRead as isClusterRead } from './cluster/index.ts';
import { sortByName } from './find-captures.ts';
import { isParserLog } from './parser-log.ts';
import { leaf, type RankFolder, roleOf } from './rank-folders.ts';
import { rootOf } from './raw-captures.ts';

/** A file whose content nobody has yet. */
interface NamedFile {
  readonly path: string;
  readonly bytes: number;
}

const ARCHIVE = /\.(zip|tar|tgz)$/i;
const READABLE = /(\.(json|csv|db|db-wal)|(^|\/)info\.json\.\d+)$/i;

/**
 * The files of an upload that an importer may open, told by their names: what need not be fetched is whatever is not among them. Raw
 * data beside an export, logs, checkpoints and tables that no rule uses are the greater part of many uploads.
 */
export function wantedFiles(files: readonly NamedFile[]): ReadonlySet<string> {
  const wanted = new Set<string>();
  const packed = new Map<string, string>();
  const entries = files.map(({ path, bytes }): ProfileEntry => {
    const name = path.replace(/\.gz$/i, '');
    packed.set(name, path);
    return { path: name, bytes, place: { file: '' }, open: nothing };
  });
  const add = (entry: ProfileEntry): void => {
    wanted.add(entry.path);
    wanted.add(packed.get(entry.path)!);
  };
  const { tidy, msprof, clusters, inside, foreign, untold } = sortByName(entries);
  for (const folder of [...tidy, ...msprof]) for (const entry of filesRead(folder)) add(entry);
  for (const cluster of clusters) for (const entry of cluster.entries) if (isClusterRead(leaf(entry.path))) add(entry);
  for (const entry of untold) if (/\.(json|csv)$/i.test(entry.path) || isParserLog(entry.path)) add(entry);
  // Any json that belongs to no rank may be a facts.json.
  for (const entry of [...inside, ...foreign]) if (/\.json$/i.test(entry.path) && rootOf(entry.path) === null) add(entry);
  // What lies in an archive may turn the files around it into a rank folder.
  if (entries.some((e) => ARCHIVE.test(e.path))) {
    for (const entry of [...untold, ...inside]) if (READABLE.test(entry.path) && rootOf(entry.path) === null) add(entry);
  }
  return wanted;
}

/** The files of a rank folder that its importer opens; of two exports side by side it may need both. */
export function filesRead(folder: RankFolder): ProfileEntry[] {
  const tables = folder.entries.filter((e) => isTableRead(roleOf(folder, e)));
  return [...new Set([...tables, ...databasesRead(folder), ...folder.entries.filter((e) => isParserLog(e.path))])];
}

async function* nothing(): AsyncGenerator<Buffer> {}
