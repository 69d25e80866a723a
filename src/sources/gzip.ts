import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { AdviseError, messageOf } from '../base/errors.ts';
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
      if (size > maxBytes) throw refuse(entry.path, 'it unpacks to more than the size limit');
      yield chunk;
      release(chunk, DECODED_CHUNK);
    }
  } catch (error) {
    if (error instanceof AdviseError) throw error;
    throw refuse(entry.path, messageOf(error));
  } finally {
    packed.destroy();
  }
}

function refuse(path: string, why: string): AdviseError {
  return new AdviseError('bad-gzip', `${path} cannot be used: ${why}`, 'Pack the file again with gzip, or upload it as it is.');
}
