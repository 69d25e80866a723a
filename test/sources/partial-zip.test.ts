/* Zips of which only parts are there: what must be, and what is refused before anything is fetched. */
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  directoryStart,
  openPlace,
  openSource,
  type Wanted,
  WORTH_A_REQUEST,
  wantedParts,
  ZIP_END_BYTES,
} from '../../src/sources/index.ts';
import { DEFAULT_LIMITS } from '../../src/sources/limits.ts';
import { readWhole } from '../../src/sources/source.ts';
import { type ZipEntry, zipOf } from '../support/archives.ts';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'npu-advisor-partial-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

async function put(data: Buffer): Promise<string> {
  const file = join(dir, 'a.zip');
  await writeFile(file, data);
  return file;
}

const json: Wanted = (files) => new Set(files.map(({ path }) => path).filter((path) => path.endsWith('.json')));
const noise = (bytes: number): Buffer => Buffer.from(Array.from({ length: bytes }, (_, i) => (i * 2654435761) >>> 24));
const entries: ZipEntry[] = [
  { name: 'raw/a.bin', data: noise(2 * WORTH_A_REQUEST), stored: true },
  { name: 'x.json', data: '{"x":1}' },
  { name: 'small.bin', data: noise(1000), stored: true },
  { name: 'y.json', data: noise(5000), stored: true },
  { name: 'raw/b.bin', data: noise(2 * WORTH_A_REQUEST), stored: true },
  { name: 'z.json', data: '{"z":1}' },
];

describe('the directory', () => {
  test.each([false, true])('is found by the end of the zip (zip64: %s)', (zip64) => {
    const zip = zipOf(entries, { zip64 });
    const tail = zip.subarray(-ZIP_END_BYTES);
    expect(directoryStart(tail, zip.length)).toBe(zip.indexOf('PK\x01\x02', 0, 'latin1'));
    // The same end, at the end of a file of terabytes, is judged by its numbers alone.
    expect(directoryStart(zip.subarray(-22), zip.length)).toBe(zip64 ? null : zip.indexOf('PK\x01\x02', 0, 'latin1'));
  });

  test('is found before a comment, and not inside one', () => {
    const zip = zipOf(entries.slice(1, 3));
    const comment = Buffer.from('PK\x05\x06 is only text here, and long enough');
    const commented = Buffer.concat([zip, comment]);
    commented.writeUInt16LE(comment.length, zip.length - 2);
    expect(directoryStart(commented, commented.length)).toBe(zip.indexOf('PK\x01\x02', 0, 'latin1'));
  });

  test.each<[string, Buffer]>([
    ['nothing', Buffer.alloc(0)],
    ['no zip', Buffer.alloc(70_000, 'PK')],
    [
      'an end that points behind itself',
      (() => {
        const zip = zipOf(entries.slice(1, 2));
        zip.writeUInt32LE(zip.length, zip.length - 6);
        return zip;
      })(),
    ],
    [
      'a zip64 end that is not there',
      (() => {
        const zip = zipOf(entries.slice(1, 2));
        zip.writeUInt32LE(0xffffffff, zip.length - 6);
        return zip;
      })(),
    ],
  ])('is not found in %s', (_, data) => {
    expect(directoryStart(data.subarray(-ZIP_END_BYTES), data.length)).toBeNull();
  });
});

describe('what must be there', () => {
  test('are the wanted files; parts that lie close together are one', async () => {
    const zip = zipOf(entries);
    const file = await put(zip);
    const parts = await wantedParts(file, json);
    expect([parts.files, parts.wantedFiles, parts.ranges.length]).toEqual([6, 3, 2]);
    expect(parts.ranges[0]!.start).toBe(zip.indexOf('x.json') - 30);

    // Everything else of the file becomes a hole: what is wanted is read as before, and the rest is listed.
    const start = directoryStart(zip.subarray(-ZIP_END_BYTES), zip.length)!;
    const handle = await open(file, 'w');
    for (const range of [{ start: 0, end: 4 }, ...parts.ranges, { start, end: zip.length }])
      await handle.write(zip, range.start, range.end - range.start, range.start);
    await handle.close();
    const source = await openSource(file, DEFAULT_LIMITS, json);
    const again = openPlace();
    expect(source.entries.map(({ path }) => path)).toEqual(entries.map(({ name }) => name));
    for (const [i, entry] of source.entries.entries()) {
      if (entry.path.endsWith('.json')) {
        expect(await readWhole(entry, 1 << 20)).toEqual(Buffer.from(entries[i]!.data!));
        expect(await readWhole(await again(entry), 1 << 20)).toEqual(Buffer.from(entries[i]!.data!));
      } else {
        await expect(readWhole(entry, 1 << 30)).rejects.toThrow('was not fetched');
        await expect(readWhole(await again(entry), 1 << 30)).rejects.toThrow('was not fetched');
      }
    }
    await source.close();
  });

  test('are archives inside, whatever they hold', async () => {
    const file = await put(
      zipOf([
        { name: 'rank0.tar.gz', data: 'x' },
        { name: 'b.bin', data: 'x' },
      ]),
    );
    expect((await wantedParts(file, json)).wantedFiles).toBe(1);
  });

  test('is nothing of a zip that would be refused', async () => {
    const file = await put(zipOf([{ name: '../x.json', data: 'x' }]));
    await expect(wantedParts(file, json)).rejects.toThrow('invalid relative path');
    const many = await put(zipOf(Array.from({ length: 30 }, (_, i) => ({ name: `${i}.json` }))));
    await expect(wantedParts(many, json, { ...DEFAULT_LIMITS, maxEntries: 20 })).rejects.toThrow('more than 20 entries');
  });
});

describe('files that share bytes', () => {
  /** Points the directory's entry number `index` to the header of the first file. */
  function pointToFirst(zip: Buffer, index: number): Buffer {
    let at = zip.indexOf('PK\x01\x02', 0, 'latin1');
    for (let i = 0; i < index; i++) at = zip.indexOf('PK\x01\x02', at + 4, 'latin1');
    zip.writeUInt32LE(0, at + 42);
    return zip;
  }
  test('refuse the zip', async () => {
    const twice = zipOf([
      { name: 'a.json', data: noise(500), stored: true },
      { name: 'b.json', data: noise(500), stored: true },
    ]);
    await expect(openSource(await put(pointToFirst(twice, 1)))).rejects.toThrow('overlap');
  });
  test('refuse it when one begins inside another', async () => {
    const inner = zipOf([{ name: 'b.json', data: 'x'.repeat(500), stored: true }]);
    const outer = zipOf([
      { name: 'a.json', data: inner, stored: true },
      { name: 'b.json', data: 'x'.repeat(500), stored: true },
    ]);
    const at = outer.lastIndexOf('PK\x01\x02', outer.length, 'latin1');
    outer.writeUInt32LE(36, at + 42);
    await expect(openSource(await put(outer))).rejects.toThrow('overlap');
  });
});
