import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import { crc32, createInflateRaw } from 'node:zlib';
import yauzl from 'yauzl';
import { AdviseError, messageOf } from '../base/errors.ts';
import type { SourceLimits } from './limits.ts';
import { DECODED_CHUNK, release } from './release.ts';
import type { ProfileEntry, ProfileSource } from './source.ts';

const SYMLINK = 0o120000;
const FILE_TYPE = 0o170000;

function refuse(label: string, why: string): AdviseError {
  return new AdviseError(
    'bad-zip',
    `${label} cannot be used: ${why}`,
    'Upload the profile folder again with actions/upload-artifact or a plain zip.',
  );
}

function openZipFile(path: string): Promise<yauzl.ZipFile> {
  return new Promise((resolve, reject) => {
    yauzl.open(path, { lazyEntries: true, autoClose: false, strictFileNames: true, validateEntrySizes: true }, (error, zip) => {
      if (error) reject(error);
      else resolve(zip);
    });
  });
}

function listEntries(zip: yauzl.ZipFile, limits: SourceLimits, label: string): Promise<yauzl.Entry[]> {
  return new Promise((resolve, reject) => {
    const list: yauzl.Entry[] = [];
    zip.on('error', reject);
    zip.on('end', () => resolve(list));
    zip.on('entry', (entry: yauzl.Entry) => {
      list.push(entry);
      if (list.length > limits.maxEntries) reject(refuse(label, `it has more than ${limits.maxEntries} entries`));
      else zip.readEntry();
    });
    zip.readEntry();
  });
}

/** Bytes of one entry: raw stream, our own inflate (2.3 times the speed of the reader's), size and CRC checked. */
async function* inflate(zip: yauzl.ZipFile, entry: yauzl.Entry, label: string): AsyncGenerator<Buffer> {
  const stored = entry.compressionMethod === 0;
  const raw = await new Promise<Readable>((resolve, reject) => {
    const done = (error: Error | null, stream?: Readable): void =>
      error || !stream ? reject(refuse(label, `${entry.fileName} is damaged (${messageOf(error ?? 'no data')})`)) : resolve(stream);
    if (stored) zip.openReadStream(entry, done);
    else zip.openReadStream(entry, { decompress: false, decrypt: null, start: null, end: null } as unknown as yauzl.ZipFileOptions, done);
  });
  const chunkSize = Math.max(1_024, Math.min(DECODED_CHUNK, entry.uncompressedSize));
  const output: Readable = stored ? raw : raw.pipe(createInflateRaw({ chunkSize }));
  if (!stored) raw.on('error', (error) => output.destroy(error));
  let size = 0;
  let sum = 0;
  try {
    for await (const chunk of output as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > entry.uncompressedSize) throw refuse(label, `${entry.fileName} is larger than the archive says`);
      sum = crc32(chunk, sum);
      yield chunk;
      if (!stored) release(chunk, chunkSize);
    }
  } catch (error) {
    if (error instanceof AdviseError) throw error;
    throw refuse(label, `${entry.fileName} is damaged (${messageOf(error)})`);
  } finally {
    raw.destroy();
  }
  if (size !== entry.uncompressedSize || sum !== entry.crc32)
    throw refuse(label, `${entry.fileName} is damaged (size or checksum differs)`);
}

/** Opens a zip without extracting it. Unsafe names, links, encryption and lies about size refuse the archive. */
export async function openZip(file: string, limits: SourceLimits, label: string = basename(file)): Promise<ProfileSource> {
  let zip: yauzl.ZipFile | null = null;
  let list: yauzl.Entry[];
  try {
    zip = await openZipFile(file);
    list = await listEntries(zip, limits, label);
  } catch (error) {
    zip?.close();
    if (error instanceof AdviseError) throw error;
    throw refuse(label, messageOf(error));
  }
  try {
    const entries = checked(zip, list, file, limits, label);
    return { label, kind: 'zip', entries, refused: [], close: async () => zip.close() };
  } catch (error) {
    zip.close();
    throw error;
  }
}

/** The files of an archive; throws when one of them gives reason to refuse all. */
function checked(zip: yauzl.ZipFile, list: readonly yauzl.Entry[], file: string, limits: SourceLimits, label: string): ProfileEntry[] {
  const entries: ProfileEntry[] = [];
  const seen = new Set<string>();
  let total = 0;
  for (const entry of list) {
    const name = entry.fileName;
    if (name.endsWith('/')) continue;
    if (((entry.externalFileAttributes >>> 16) & FILE_TYPE) === SYMLINK) throw refuse(label, 'it holds a symbolic link');
    if ((entry.generalPurposeBitFlag & 1) !== 0) throw refuse(label, 'it is encrypted');
    if (entry.compressionMethod !== 0 && entry.compressionMethod !== 8)
      throw refuse(label, `compression method ${entry.compressionMethod} is not supported`);
    if (name.length > limits.maxNameLength) throw refuse(label, 'a file name in it is too long');
    const key = name.toLowerCase();
    if (seen.has(key)) throw refuse(label, 'two entries have the same name');
    seen.add(key);
    total += entry.uncompressedSize;
    if (entry.uncompressedSize > limits.maxEntryBytes || total > limits.maxTotalBytes)
      throw refuse(label, 'it unpacks to more than the size limit');
    entries.push({ path: name, bytes: entry.uncompressedSize, place: { zip: file, member: name }, open: () => inflate(zip, entry, label) });
  }
  return entries;
}
