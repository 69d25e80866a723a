import { basename } from 'node:path';
import { AdviseError } from '../base/errors.ts';
import { DEFAULT_LIMITS, type SourceLimits } from './limits.ts';
import { NAMED_ARCHIVE } from './nested.ts';
import type { ProfileEntry, ProfileSource } from './source.ts';
import { openDirectory } from './zip-directory.ts';

/** Which files of an upload may be opened, told by their names. */
export type Wanted = (files: readonly { readonly path: string; readonly bytes: number }[]) => ReadonlySet<string>;

/** Bytes `start` to `end` of an archive, `end` not included. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** What of a zip must be there for its wanted files to be read. */
export interface WantedParts {
  readonly files: number;
  readonly wantedFiles: number;
  /** In order, apart from each other. */
  readonly ranges: readonly ByteRange[];
}

/** Two parts with fewer bytes between them are one: a request more costs about as much as a megabyte (40 ms at 25 MB/s). */
export const WORTH_A_REQUEST = 1 << 20;

/** Reads the directory of a zip whose files need not be there yet. Refuses what `openSource` refuses, before a byte of it is fetched. */
export async function wantedParts(
  file: string,
  wanted: Wanted,
  limits: SourceLimits = DEFAULT_LIMITS,
  only: Wanted | null = null,
): Promise<WantedParts> {
  const { zip, members } = await openDirectory(file, limits, basename(file));
  zip.close();
  const named = members.map(({ entry, start, end }) => ({ path: entry.fileName, bytes: entry.uncompressedSize, start, end }));
  const own = only === null ? null : only(named);
  const mine = own === null ? named : named.filter(({ path }) => own.has(path));
  const isHeld = heldBy(wanted, mine);
  const kept = mine.filter(({ path }) => isHeld(path)).sort((a, b) => a.start - b.start);
  const ranges: { start: number; end: number }[] = [];
  for (const { start, end } of kept) {
    const last = ranges.at(-1);
    if (last !== undefined && start - last.end < WORTH_A_REQUEST) last.end = end;
    else ranges.push({ start, end });
  }
  return { files: named.length, wantedFiles: kept.length, ranges };
}

/** The same zip with only its wanted files there: the others are listed, since their names tell something, too. */
export function withoutUnwanted(source: ProfileSource, wanted: Wanted): ProfileSource {
  const isHeld = heldBy(wanted, source.entries);
  return { ...source, entries: source.entries.map((entry) => (isHeld(entry.path) ? entry : absent(entry))) };
}

/** Archives inside are always opened: only their content tells what they are. */
function heldBy(wanted: Wanted, files: Parameters<Wanted>[0]): (path: string) => boolean {
  const names = wanted(files);
  return (path) => names.has(path) || NAMED_ARCHIVE.test(path);
}

/** The same source without the files that somebody else reads. */
export function limitedTo(source: ProfileSource, only: Wanted): ProfileSource {
  const own = only(source.entries);
  return { ...source, entries: source.entries.filter(({ path }) => own.has(path)) };
}

export function absent(entry: Omit<ProfileEntry, 'open'>): ProfileEntry {
  return {
    ...entry,
    place: { ...entry.place, absent: true },
    // biome-ignore lint/correctness/useYield: it fails before the first chunk, as a damaged file does
    open: async function* () {
      throw new AdviseError(
        'not-fetched',
        { en: `a file was not fetched: ${entry.path}`, zh: `有文件未下载：${entry.path}` },
        { en: 'This is a defect of NPU Advisor; please report it.', zh: '这是 NPU Advisor 的缺陷，可提交 issue 反馈。' },
      );
    },
  };
}
