/** Zips a folder as a stream, as actions/upload-artifact does: files of any size, a constant amount of memory. */
import { createReadStream, createWriteStream, type WriteStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { crc32, createDeflateRaw } from 'node:zlib';

interface Entry {
  name: Buffer;
  crc: number;
  packed: number;
  size: number;
  offset: number;
}

const MAX_32 = 0xffffffff;
const MAX_16 = 0xffff;
/** Names are UTF-8; crc and sizes follow the data. */
const FLAGS = 0x0808;
const DEFLATE = 8;
/** 1980-01-01, so that equal folders give equal archives. */
const DATE = 0x21;
const VERSION = 45;

/** Writes all files below `path`, or the file itself, to a zip. Gives the number of files. */
export async function zipFolder(path: string, zipPath: string, signal?: AbortSignal): Promise<number> {
  const out = createWriteStream(zipPath);
  const entries: Entry[] = [];
  let offset = 0;
  const write = async (bytes: Buffer): Promise<void> => {
    offset += bytes.length;
    await put(out, bytes);
  };
  for (const [file, name] of await filesOf(path)) {
    const entry: Entry = { name: Buffer.from(name), crc: 0, packed: 0, size: 0, offset };
    await write(localHeader(entry));
    const deflate = createDeflateRaw({ level: 1 });
    await pipeline(
      createReadStream(file, { highWaterMark: 1 << 18 }),
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          entry.crc = crc32(chunk, entry.crc);
          entry.size += chunk.length;
          yield chunk;
        }
      },
      deflate,
      async (chunks: AsyncIterable<Buffer>) => {
        for await (const chunk of chunks) {
          entry.packed += chunk.length;
          await write(chunk);
        }
      },
      signal === undefined ? {} : { signal },
    );
    await write(descriptor(entry));
    entries.push(entry);
  }
  const start = offset;
  for (const entry of entries) await write(directoryEntry(entry));
  await write(endOfDirectory(entries.length, start, offset - start));
  await new Promise<void>((resolve, reject) => out.once('error', reject).end(resolve));
  return entries.length;
}

function put(out: WriteStream, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => out.write(bytes, (error) => (error ? reject(error) : resolve())));
}

/** Files with their names in the archive, in name order. Links are followed; what they point at may be a file only. */
async function filesOf(path: string): Promise<[file: string, name: string][]> {
  if ((await stat(path)).isFile()) return [[path, basename(path)]];
  const names = (await readdir(path, { recursive: true })).sort();
  const files: [string, string][] = [];
  for (const name of names) {
    const file = join(path, name);
    if ((await stat(file).catch(() => null))?.isFile()) files.push([file, name.replaceAll('\\', '/')]);
  }
  return files;
}

function fields(...values: [value: number | bigint, bytes: 2 | 4 | 8][]): Buffer {
  return Buffer.concat(
    values.map(([value, bytes]) => {
      const field = Buffer.alloc(bytes);
      if (bytes === 8) field.writeBigUInt64LE(BigInt(value));
      else field.writeUIntLE(Number(value), 0, bytes);
      return field;
    }),
  );
}

function localHeader({ name }: Entry): Buffer {
  const head = fields([0x04034b50, 4], [VERSION, 2], [FLAGS, 2], [DEFLATE, 2], [0, 2], [DATE, 2], [0, 4], [0, 4], [0, 4]);
  // An empty zip64 field says that the sizes after the data have eight bytes.
  const zip64 = fields([1, 2], [16, 2], [0, 8], [0, 8]);
  return Buffer.concat([head, fields([name.length, 2], [zip64.length, 2]), name, zip64]);
}

function descriptor({ crc, packed, size }: Entry): Buffer {
  return fields([0x08074b50, 4], [crc, 4], [packed, 8], [size, 8]);
}

function directoryEntry({ name, crc, packed, size, offset }: Entry): Buffer {
  const isLarge = Math.max(packed, size, offset) >= MAX_32;
  const zip64 = isLarge ? fields([1, 2], [24, 2], [size, 8], [packed, 8], [offset, 8]) : Buffer.alloc(0);
  const shown = (value: number): number => (isLarge ? MAX_32 : value);
  return Buffer.concat([
    fields([0x02014b50, 4], [VERSION, 2], [VERSION, 2], [FLAGS, 2], [DEFLATE, 2], [0, 2], [DATE, 2], [crc, 4]),
    fields([shown(packed), 4], [shown(size), 4], [name.length, 2], [zip64.length, 2], [0, 2], [0, 2], [0, 2], [0, 4], [shown(offset), 4]),
    name,
    zip64,
  ]);
}

function endOfDirectory(count: number, start: number, bytes: number): Buffer {
  const isLarge = count >= MAX_16 || start >= MAX_32 || bytes >= MAX_32;
  const zip64 = isLarge
    ? Buffer.concat([
        fields([0x06064b50, 4], [44, 8], [VERSION, 2], [VERSION, 2], [0, 4], [0, 4], [count, 8], [count, 8], [bytes, 8], [start, 8]),
        fields([0x07064b50, 4], [0, 4], [start + bytes, 8], [1, 4]),
      ])
    : Buffer.alloc(0);
  const shown = (value: number, max: number): number => (isLarge ? max : value);
  return Buffer.concat([
    zip64,
    fields([0x06054b50, 4], [0, 2], [0, 2], [shown(count, MAX_16), 2], [shown(count, MAX_16), 2]),
    fields([shown(bytes, MAX_32), 4], [shown(start, MAX_32), 4], [0, 2]),
  ]);
}
