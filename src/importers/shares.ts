import type { ProfileEntry } from '../sources/source.ts';
import { sortByName } from './find-captures.ts';
import { isParserLog } from './parser-log.ts';
import { ancestors, parent } from './rank-folders.ts';

/** One of several shares that an upload is divided into by its ranks. */
export interface Share {
  readonly index: number;
  readonly of: number;
}

interface NamedFile {
  readonly path: string;
  readonly bytes: number;
}

const ARCHIVE = /\.(zip|tar|tgz)$/i;

/** Files that are read together: of a rank folder, or an archive in the upload. */
interface Group {
  readonly name: string;
  readonly paths: string[];
  bytes: number;
}

/**
 * What of an upload can be read apart from the rest, told by its names, so that every process comes to the same. `rest` belongs to no
 * rank folder; `logs` speak of all ranks.
 */
function groupsOf(files: readonly NamedFile[]): { groups: Group[]; rest: string[]; logs: string[] } {
  const packed = new Map(files.map(({ path }) => [path.replace(/\.gz$/i, ''), path] as const));
  const entries = [...packed].map(([path]): ProfileEntry => ({ path, bytes: 0, place: { file: '' }, open: nothing }));
  const { tidy, inside, msprof, clusters, foreign, untold } = sortByName(entries);
  const sizes = new Map(files.map(({ path, bytes }) => [path, bytes] as const));
  const groups = new Map<string, Group>();
  const add = (name: string, path: string): void => {
    const own = packed.get(path)!;
    const group = groups.get(name) ?? { name, paths: [], bytes: 0 };
    group.paths.push(own);
    group.bytes += sizes.get(own) ?? 0;
    groups.set(name, group);
  };
  const rest: string[] = [];
  const logs: string[] = [];
  // Databases of several ranks in one folder stay together, as do the settings beside them.
  for (const { folder, entries: own } of tidy) for (const { path } of own) add(folder, path);
  for (const { path } of inside) add([...ancestors(path)].find((folder) => groups.has(folder))!, path);
  // What lies in an archive may turn loose files around it into a rank folder.
  const loose = new Set(untold.filter(({ path }) => !ARCHIVE.test(path) && !isParserLog(path)).map(({ path }) => parent(path)));
  for (const { path } of untold) {
    if (ARCHIVE.test(path) && !loose.has(parent(path))) add(path, path);
    else if (isParserLog(path)) logs.push(packed.get(path)!);
    else rest.push(packed.get(path)!);
  }
  for (const { path } of [...msprof, ...clusters].flatMap((of) => of.entries)) rest.push(packed.get(path)!);
  for (const { path } of foreign) rest.push(packed.get(path)!);
  return { groups: [...groups.values()], rest, logs };
}

/** Into how many shares an upload can be divided at most. */
export function shareCount(files: readonly NamedFile[]): number {
  return groupsOf(files).groups.length;
}

/** The files of one share: rank folders by their size, evenly; what belongs to no rank goes with the largest, so no share is without ranks. */
export function filesOfShare(files: readonly NamedFile[], { index, of }: Share): ReadonlySet<string> {
  const { groups, rest, logs } = groupsOf(files);
  const shares = Array.from({ length: of }, () => ({ bytes: 0, paths: [] as string[] }));
  for (const group of groups.sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1))) {
    const least = shares.reduce((a, b) => (b.bytes < a.bytes ? b : a));
    least.paths.push(...group.paths);
    least.bytes += Math.max(1, group.bytes);
  }
  return new Set([...(shares[index]?.paths ?? []), ...logs, ...(index === 0 ? rest : [])]);
}

async function* nothing(): AsyncGenerator<Buffer> {}
