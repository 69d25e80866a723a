import { open, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { AdviseError } from '../base/errors.ts';
import { fileEntry, openFolder } from './folder.ts';
import { DEFAULT_LIMITS, type SourceLimits } from './limits.ts';
import type { EntryPlace, ProfileEntry, ProfileSource } from './source.ts';
import { openTar } from './tar.ts';
import { looksLikeZip, openZip } from './zip.ts';

export type { SourceLimits } from './limits.ts';
export type { ProfileEntry, ProfileSource } from './source.ts';

async function isTar(path: string): Promise<boolean> {
  const handle = await open(path, 'r');
  try {
    const magic = Buffer.alloc(5);
    await handle.read(magic, 0, 5, 257);
    return magic.toString('latin1') === 'ustar';
  } finally {
    await handle.close();
  }
}

async function isGzip(path: string): Promise<boolean> {
  const handle = await open(path, 'r');
  try {
    const magic = Buffer.alloc(2);
    await handle.read(magic, 0, 2, 0);
    return magic[0] === 0x1f && magic[1] === 0x8b;
  } finally {
    await handle.close();
  }
}

/** Opens what a person points at; decided by content, not by name. Throws AdviseError with a hint. */
export async function openSource(path: string, limits: SourceLimits = DEFAULT_LIMITS): Promise<ProfileSource> {
  const info = await stat(path).catch(() => null);
  if (info === null) throw new AdviseError('not-found', `${path} does not exist`, 'Give a profile folder, a zip or a tar.gz.');
  if (info.isDirectory()) return openFolder(path, limits);
  if (!info.isFile() || info.size === 0)
    throw new AdviseError('empty', `${path} is empty or not a file`, 'Give a profile folder, a zip or a tar.gz.');
  if (await looksLikeZip(path)) return openZip(path, limits);
  if (/\.zip$/i.test(path)) {
    throw new AdviseError(
      'bad-zip',
      `${basename(path)} cannot be used: it is not a zip file`,
      'Upload the profile folder again with actions/upload-artifact or a plain zip.',
    );
  }
  if (await isTar(path)) return openTar(path, false, limits);
  if (/\.(tar\.gz|tgz)$/i.test(path) && (await isGzip(path))) return openTar(path, true, limits);
  return { label: basename(path), kind: 'file', entries: [fileEntry(path, basename(path), info.size)], close: async () => {} };
}

/** Opens an entry again from its place. */
export type PlaceOpener = (entry: { readonly path: string; readonly bytes: number; readonly place: EntryPlace }) => Promise<ProfileEntry>;

/** An opener that keeps each zip open between calls. */
export function openPlace(limits: SourceLimits = DEFAULT_LIMITS): PlaceOpener {
  const zips = new Map<string, Promise<Map<string, ProfileEntry>>>();
  return async ({ path, bytes, place }) => {
    if ('file' in place) return fileEntry(place.file, path, bytes);
    let members = zips.get(place.zip);
    if (members === undefined) {
      members = openZip(place.zip, limits).then((source) => new Map(source.entries.map((e) => [e.path, e] as const)));
      zips.set(place.zip, members);
    }
    const member = (await members).get(place.member);
    if (member === undefined) throw new AdviseError('bad-zip', `${basename(place.zip)} changed while it was read`, 'Try again.');
    return { ...member, path };
  };
}
