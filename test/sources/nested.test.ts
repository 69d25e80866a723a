/* Archives in archives: what people get who pack each rank and let upload-artifact pack the rest. */
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openPlace, openSource, type ProfileSource } from '../../src/sources/index.ts';
import { DEFAULT_LIMITS } from '../../src/sources/limits.ts';
import { readWhole } from '../../src/sources/source.ts';
import { tarOf, zipOf } from '../support/archives.ts';

let dir = '';
let spill = '';
const oldTmp = process.env.TMPDIR;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'npu-advisor-nested-'));
  spill = join(dir, 'tmp');
  await mkdir(spill);
  process.env.TMPDIR = spill;
});
afterEach(async () => {
  if (oldTmp === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = oldTmp;
  await rm(dir, { recursive: true, force: true });
});

async function put(name: string, data: Buffer | string): Promise<string> {
  const file = join(dir, name);
  await mkdir(join(file, '..'), { recursive: true });
  await writeFile(file, data);
  return file;
}

async function contents(source: ProfileSource): Promise<Record<string, string>> {
  const open = openPlace();
  const out: Record<string, string> = {};
  for (const entry of source.entries) {
    out[entry.path] = (await readWhole(entry, 1 << 20))?.toString('utf8') ?? 'too large';
    // A reading thread has only the place.
    expect((await readWhole(await open(entry), 1 << 20))?.toString('utf8')).toBe(out[entry.path]);
  }
  return out;
}

const rankZip = (rank: number): Buffer => zipOf([{ name: 'ASCEND_PROFILER_OUTPUT/trace_view.json', data: `[${rank}]` }]);
const rankTar = (rank: number): Buffer => tarOf([{ name: 'ASCEND_PROFILER_OUTPUT/trace_view.json', data: `[${rank}]` }]);

describe('archives inside an upload', () => {
  test('zip, tar and tar.gz per rank inside a zip', async () => {
    const file = await put(
      'a.zip',
      zipOf([
        { name: 'rank0.zip', data: rankZip(0) },
        { name: 'rank1.tar', data: rankTar(1) },
        { name: 'node/rank2.tar.gz', data: gzipSync(rankTar(2)) },
        { name: 'README.md', data: 'x' },
      ]),
    );
    const source = await openSource(file);
    expect(await contents(source)).toEqual({
      'rank0.zip/ASCEND_PROFILER_OUTPUT/trace_view.json': '[0]',
      'rank1.tar/ASCEND_PROFILER_OUTPUT/trace_view.json': '[1]',
      'node/rank2.tar.gz/ASCEND_PROFILER_OUTPUT/trace_view.json': '[2]',
      'README.md': 'x',
    });
    expect(source.refused).toEqual([]);
    await source.close();
    expect(await readdir(spill)).toEqual([]);
  });

  test('a zip in a folder is read in place, a tar in a tar is spilled and gone on close', async () => {
    await put('prof/rank0.zip', rankZip(0));
    const folder = await openSource(join(dir, 'prof'));
    expect(await readdir(spill)).toEqual([]);
    expect(Object.keys(await contents(folder))).toEqual(['rank0.zip/ASCEND_PROFILER_OUTPUT/trace_view.json']);
    await folder.close();
    const tar = await openSource(await put('b.tar', tarOf([{ name: 'rank1.tgz', data: gzipSync(rankTar(1)) }])));
    expect(await contents(tar)).toEqual({ 'rank1.tgz/ASCEND_PROFILER_OUTPUT/trace_view.json': '[1]' });
    await tar.close();
    expect(await readdir(spill)).toEqual([]);
  });

  test('two levels are opened, a third is said and left closed', async () => {
    const three = zipOf([{ name: 'c.zip', data: rankZip(3) }]);
    const file = await put(
      'a.zip',
      zipOf([
        {
          name: 'node0.zip',
          data: zipOf([
            { name: 'b.zip', data: three },
            { name: 'd.zip', data: rankZip(1) },
          ]),
        },
      ]),
    );
    const source = await openSource(file);
    expect(source.entries.map((e) => e.path)).toEqual(['node0.zip/d.zip/ASCEND_PROFILER_OUTPUT/trace_view.json']);
    expect(source.refused.map((r) => r.path)).toEqual(['node0.zip/b.zip/c.zip']);
    await source.close();
    expect(await readdir(spill)).toEqual([]);
  });

  test('a packed trace or table is read as the file it holds, alone or inside', async () => {
    const alone = await openSource(await put('trace_view.json.gz', gzipSync('[1]')));
    expect(await contents(alone)).toEqual({ 'trace_view.json': '[1]' });
    await alone.close();
    const inside = await openSource(await put('a.zip', zipOf([{ name: 'r/kernel_details.csv.gz', data: gzipSync('Name\n') }])));
    expect(await contents(inside)).toEqual({ 'r/kernel_details.csv': 'Name\n' });
    await inside.close();
    expect(await readdir(spill)).toEqual([]);
  });

  test('a damaged or hostile archive costs itself, not the upload', async () => {
    const file = await put(
      'a.zip',
      zipOf([
        { name: 'cut.zip', data: rankZip(0).subarray(0, 60) },
        { name: 'evil.tar', data: tarOf([{ name: '../evil.csv', data: 'x' }]) },
        { name: 'link.zip', data: zipOf([{ name: 'trace_view.json', data: '/etc/passwd', mode: 0o120777 }]) },
        { name: 'good.zip', data: rankZip(4) },
        { name: 'not.gz', data: 'plain text' },
      ]),
    );
    const source = await openSource(file);
    expect(source.refused.map((r) => r.path)).toEqual(['cut.zip', 'evil.tar', 'link.zip']);
    for (const r of source.refused)
      expect(r.why).toMatchObject({ en: expect.stringMatching(/cannot be used/), zh: expect.stringMatching(/无法使用/) });
    expect(Object.keys(await contents(source))).toEqual(['good.zip/ASCEND_PROFILER_OUTPUT/trace_view.json', 'not.gz']);
    await source.close();
    expect(await readdir(spill)).toEqual([]);
  });

  test('bytes and entries are counted over all levels together', async () => {
    const half = zipOf([{ name: 'trace_view.json', data: 'x'.repeat(60_000) }]);
    const file = await put(
      'a.zip',
      zipOf([
        { name: 'a.zip', data: half },
        { name: 'b.zip', data: half },
      ]),
    );
    const source = await openSource(file, { ...DEFAULT_LIMITS, maxTotalBytes: 100_000 });
    expect(source.entries.map((e) => e.path)).toEqual(['a.zip/trace_view.json']);
    expect(source.refused).toMatchObject([
      { path: 'b.zip', why: { en: expect.stringMatching(/size limit/), zh: expect.stringMatching(/[\u4e00-\u9fff]/) } },
    ]);
    await source.close();
    const few = await openSource(file, { ...DEFAULT_LIMITS, maxEntries: 3 });
    expect(few.entries).toHaveLength(1);
    await few.close();
    const bomb = await openSource(await put('t.json.gz', gzipSync(Buffer.alloc(5_000_000))), { ...DEFAULT_LIMITS, maxEntryBytes: 1 << 20 });
    await expect(readWhole(bomb.entries[0]!, 1 << 30)).rejects.toThrow(/size limit/);
  });
});
