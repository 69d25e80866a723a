import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { AdviseError, type Said, saidIn } from '../base/errors.ts';
import { reasonOf } from './reason.ts';
import { DECODED_CHUNK, release } from './release.ts';
import { copies, type ProfileEntry } from './source.ts';

/** A file packed with gzip, as the file it holds; unpacked while it is read, never written anywhere. Its `bytes` stay the packed ones. */
export function gunzipped(entry: ProfileEntry, maxBytes: number): ProfileEntry {
  return {
    path: entry.path.replace(/\.gz$/i, ''),
    bytes: entry.bytes,
    place: { ...entry.place, gzip: true },
    open: () => gunzip(entry, maxBytes),
  };
}

/** The content of a gzip file; refuses damage and more than `maxBytes`. */
export async function* gunzip(entry: ProfileEntry, maxBytes: number): AsyncGenerator<Buffer> {
  const packed = Readable.from(copies(entry.open()), { objectMode: false });
  const output = packed.pipe(createGunzip({ chunkSize: DECODED_CHUNK }));
  packed.on('error', (error) => output.destroy(error));
  let size = 0;
  try {
    for await (const chunk of output as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBytes) throw refuse(entry.path, { en: 'it unpacks to more than the size limit', zh: '解压后超过大小限制' });
      yield chunk;
      release(chunk, DECODED_CHUNK);
    }
  } catch (error) {
    if (error instanceof AdviseError) throw error;
    throw refuse(entry.path, reasonOf(error));
  } finally {
    packed.destroy();
  }
}

function refuse(path: string, why: Said): AdviseError {
  return new AdviseError(
    'bad-gzip',
    { en: `${path} cannot be used: ${saidIn(why, 'en')}`, zh: `${path} 无法使用：${saidIn(why, 'zh')}` },
    { en: 'Pack the file again with gzip, or upload it as it is.', zh: '用 gzip 重新压缩，或直接上传原文件。' },
  );
}
