import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import { crc32, createInflateRaw } from 'node:zlib';
import type yauzl from 'yauzl';
import { AdviseError, type Said, saidIn } from '../base/errors.ts';
import type { SourceLimits } from './limits.ts';
import { reasonOf } from './reason.ts';
import { DECODED_CHUNK, release } from './release.ts';
import type { ProfileEntry, ProfileSource } from './source.ts';
import { openDirectory, refuseZip } from './zip-directory.ts';

function damaged(label: string, { fileName }: yauzl.Entry, why: Said): AdviseError {
  return refuseZip(label, { en: `${fileName} is damaged (${saidIn(why, 'en')})`, zh: `${fileName} 已损坏（${saidIn(why, 'zh')}）` });
}

/** Bytes of one entry: raw stream, our own inflate (2.3 times the speed of the reader's), size and CRC checked. */
async function* inflate(zip: yauzl.ZipFile, entry: yauzl.Entry, label: string): AsyncGenerator<Buffer> {
  const stored = entry.compressionMethod === 0;
  const raw = await new Promise<Readable>((resolve, reject) => {
    const done = (error: Error | null, stream?: Readable): void =>
      error || !stream ? reject(damaged(label, entry, reasonOf(error ?? 'no data'))) : resolve(stream);
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
      if (size > entry.uncompressedSize)
        throw refuseZip(label, { en: `${entry.fileName} is larger than the archive says`, zh: `${entry.fileName} 比压缩包声明的更大` });
      sum = crc32(chunk, sum);
      yield chunk;
      if (!stored) release(chunk, chunkSize);
    }
  } catch (error) {
    if (error instanceof AdviseError) throw error;
    throw damaged(label, entry, reasonOf(error));
  } finally {
    raw.destroy();
  }
  if (size !== entry.uncompressedSize || sum !== entry.crc32)
    throw damaged(label, entry, { en: 'size or checksum differs', zh: '大小或校验和不符' });
}

/** Opens a zip without extracting it. Unsafe names, links, encryption and lies about size refuse the archive. */
export async function openZip(file: string, limits: SourceLimits, label: string = basename(file)): Promise<ProfileSource> {
  const { zip, members } = await openDirectory(file, limits, label);
  const entries = members.map(({ entry }): ProfileEntry => {
    const { fileName, uncompressedSize } = entry;
    return { path: fileName, bytes: uncompressedSize, place: { zip: file, member: fileName }, open: () => inflate(zip, entry, label) };
  });
  return { label, kind: 'zip', entries, refused: [], close: async () => zip.close() };
}
