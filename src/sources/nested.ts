import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { AdviseError } from '../base/errors.ts';
import { archiveKind } from './archive-kind.ts';
import { gunzip, gunzipped } from './gzip.ts';
import type { SourceLimits } from './limits.ts';
import { copies, type ProfileEntry, type ProfileSource, type RefusedArchive } from './source.ts';
import { openTar } from './tar.ts';
import { openZip } from './zip.ts';

/** A file that may be an archive, by its name. */
export const NAMED_ARCHIVE = /\.(zip|tar|tgz|gz)$/i;
/** Archives inside the upload: one per rank in one per node. Anything deeper stays closed. */
const MAX_LEVELS = 2;

/** What may still be read, counted down over all levels together. */
interface Room {
  entries: number;
  bytes: number;
}

/** The upload with the archives in it opened: their files appear below the archive's own path. Throws nothing: a bad one is listed as refused. */
export async function withNested(source: ProfileSource, limits: SourceLimits): Promise<ProfileSource> {
  if (!source.entries.some((e) => NAMED_ARCHIVE.test(e.path))) return source;
  const room: Room = { entries: limits.maxEntries, bytes: limits.maxTotalBytes };
  take(room, source.entries);
  const refused: RefusedArchive[] = [...source.refused];
  const closers = [source.close];
  const entries = await opened(source.entries, { limits, room, refused, closers, level: 1 });
  return {
    ...source,
    entries,
    refused,
    close: async () => {
      for (const close of closers.reverse()) await close();
    },
  };
}

interface Opening {
  readonly limits: SourceLimits;
  readonly room: Room;
  readonly refused: RefusedArchive[];
  readonly closers: (() => Promise<void>)[];
  readonly level: number;
}

function take(room: Room, entries: readonly ProfileEntry[]): void {
  room.entries -= entries.length;
  for (const entry of entries) room.bytes -= entry.bytes;
}

async function opened(entries: readonly ProfileEntry[], opening: Opening): Promise<ProfileEntry[]> {
  const out: ProfileEntry[] = [];
  for (const entry of entries) {
    if (!NAMED_ARCHIVE.test(entry.path)) {
      out.push(entry);
      continue;
    }
    try {
      const inner = await openInner(entry, opening);
      if (inner === null) out.push(entry);
      else if (!Array.isArray(inner)) out.push(inner);
      else for (const own of await opened(inner, { ...opening, level: opening.level + 1 })) out.push(own);
    } catch (error) {
      if (!(error instanceof AdviseError)) throw error;
      opening.refused.push({ path: entry.path, bytes: entry.bytes, why: { en: error.told.en.message, zh: error.told.zh.message } });
    }
  }
  return out;
}

/** The files of an archive, or the one file of a gzip, or null when the entry is no archive after all. */
async function openInner(entry: ProfileEntry, { limits, room, closers, level }: Opening): Promise<ProfileEntry[] | ProfileEntry | null> {
  const kind = await archiveKind(entry);
  if (kind === null) return null;
  const left: SourceLimits = { ...limits, maxEntries: Math.max(0, room.entries), maxTotalBytes: Math.max(0, room.bytes) };
  const maxBytes = Math.min(limits.maxEntryBytes, left.maxTotalBytes);
  if (kind === 'gz') return gunzipped(entry, maxBytes);
  if (level > MAX_LEVELS)
    throw new AdviseError(
      'too-deep',
      { en: `it lies in ${MAX_LEVELS} other archives`, zh: `它位于 ${MAX_LEVELS} 层压缩包之内` },
      { en: 'Upload it by itself.', zh: '单独上传它。' },
    );
  const inner =
    kind === 'zip'
      ? await openInnerZip(entry, left, closers)
      : await openTar(entry.path, kind === 'tgz' ? gunzip(entry, maxBytes) : entry.open(), left);
  closers.push(inner.close);
  take(room, inner.entries);
  return inner.entries.map((e) => ({ ...e, path: `${entry.path}/${e.path}` }));
}

/** A zip needs random access: one inside another archive is written to a temporary folder first, under a generated name. */
async function openInnerZip(entry: ProfileEntry, limits: SourceLimits, closers: (() => Promise<void>)[]): Promise<ProfileSource> {
  if ('file' in entry.place && entry.place.gzip !== true) return openZip(entry.place.file, limits, entry.path);
  const spill = await mkdtemp(join(tmpdir(), 'npu-advisor-zip-'));
  closers.push(() => rm(spill, { recursive: true, force: true }));
  const file = join(spill, '1');
  await pipeline(copies(entry.open()), createWriteStream(file));
  return openZip(file, limits, entry.path);
}
