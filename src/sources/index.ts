import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { AdviseError } from '../base/errors.ts';
import { archiveKind } from './archive-kind.ts';
import { fileEntry, openFolder } from './folder.ts';
import { gunzip, gunzipped } from './gzip.ts';
import { DEFAULT_LIMITS, type SourceLimits } from './limits.ts';
import { withNested } from './nested.ts';
import { absent, limitedTo, type Wanted, withoutUnwanted } from './partial-zip.ts';
import type { EntryPlace, ProfileEntry, ProfileSource } from './source.ts';
import { openTar } from './tar.ts';
import { openZip } from './zip.ts';
import { refuseZip } from './zip-directory.ts';

export type { SourceLimits } from './limits.ts';
export { type ByteRange, type Wanted, type WantedParts, WORTH_A_REQUEST, wantedParts } from './partial-zip.ts';
export { reasonOf, reasonParams } from './reason.ts';
export type { ProfileEntry, ProfileSource } from './source.ts';
export { directoryStart, ZIP_END_BYTES } from './zip-end.ts';

/**
 * Opens what a person points at, with the archives in it; decided by content, not by name. Throws AdviseError with a hint.
 * `held`: only these files of a zip are there; `only`: the others do not count.
 */
export async function openSource(
  path: string,
  limits: SourceLimits = DEFAULT_LIMITS,
  held: Wanted | null = null,
  only: Wanted | null = null,
): Promise<ProfileSource> {
  const all = await openOuter(path, limits);
  const whole = only === null ? all : limitedTo(all, only);
  const outer = held === null ? whole : withoutUnwanted(whole, held);
  try {
    return await withNested(outer, limits);
  } catch (error) {
    await outer.close();
    throw error;
  }
}

async function openOuter(path: string, limits: SourceLimits): Promise<ProfileSource> {
  const hint = { en: 'Give a profile folder, a zip or a tar.gz.', zh: '给出 profile 目录、zip 或 tar.gz。' };
  const info = await stat(path).catch(() => null);
  if (info === null) throw new AdviseError('not-found', { en: `${path} does not exist`, zh: `${path} 不存在` }, hint);
  if (info.isDirectory()) return openFolder(path, limits);
  if (!info.isFile() || info.size === 0)
    throw new AdviseError('empty', { en: `${path} is empty or not a file`, zh: `${path} 为空或不是文件` }, hint);
  const label = basename(path);
  const entry = fileEntry(path, label, info.size);
  switch (await archiveKind(entry)) {
    case 'zip':
      return openZip(path, limits);
    case 'tar':
      return openTar(label, entry.open(), limits);
    case 'tgz':
      return openTar(label, gunzip(entry, limits.maxTotalBytes), limits);
    case 'gz':
      return single(label, gunzipped(entry, limits.maxEntryBytes));
    case null:
      if (/\.zip$/i.test(path)) {
        throw refuseZip(label, { en: 'it is not a zip file', zh: '它不是 zip 文件' });
      }
      return single(label, entry);
  }
}

function single(label: string, entry: ProfileEntry): ProfileSource {
  return { label, kind: 'file', entries: [entry], refused: [], close: async () => {} };
}

/** Opens an entry again from its place. */
export type PlaceOpener = (entry: { readonly path: string; readonly bytes: number; readonly place: EntryPlace }) => Promise<ProfileEntry>;

/** An opener that keeps each zip open between calls. */
export function openPlace(limits: SourceLimits = DEFAULT_LIMITS): PlaceOpener {
  const zips = new Map<string, Promise<Map<string, ProfileEntry>>>();
  const packed: PlaceOpener = async ({ path, bytes, place }) => {
    if (place.absent === true) return absent({ path, bytes, place });
    if ('file' in place) return fileEntry(place.file, path, bytes);
    let members = zips.get(place.zip);
    if (members === undefined) {
      members = openZip(place.zip, limits).then((source) => new Map(source.entries.map((e) => [e.path, e] as const)));
      zips.set(place.zip, members);
    }
    const member = (await members).get(place.member);
    if (member === undefined)
      throw new AdviseError(
        'bad-zip',
        { en: `${basename(place.zip)} changed while it was read`, zh: `${basename(place.zip)} 在读取期间发生了变化` },
        { en: 'Try again.', zh: '重试即可。' },
      );
    return { ...member, path };
  };
  return async (at) => {
    const entry = await packed(at);
    return at.place.gzip === true ? { ...gunzipped(entry, limits.maxEntryBytes), path: at.path } : entry;
  };
}
