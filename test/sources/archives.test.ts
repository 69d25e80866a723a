import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AdviseError } from '../../src/base/errors.ts';
import { openPlace, openSource, type ProfileSource } from '../../src/sources/index.ts';
import { DEFAULT_LIMITS } from '../../src/sources/limits.ts';
import { readWhole } from '../../src/sources/source.ts';
import { tarOf, type ZipEntry, zipOf } from '../support/archives.ts';

let dir = '';
let spill = '';
const oldTmp = process.env.TMPDIR;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'npu-advisor-sources-'));
  // A temporary folder of this test's own, so that whatever is left behind is seen.
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
  await writeFile(file, data);
  return file;
}

async function refusal(work: Promise<unknown>): Promise<AdviseError> {
  const error = await work.then(
    () => null,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(AdviseError);
  const known = error as AdviseError;
  expect(known.message).not.toBe('');
  expect(known.hint).toMatch(/\S/);
  return known;
}

/** Nothing lies beside what the test wrote itself, and nothing in the temporary folder. */
async function expectNothingWritten(own: readonly string[]): Promise<void> {
  expect(await readdir(spill)).toEqual([]);
  expect((await readdir(dir)).sort()).toEqual(['tmp', ...own].sort());
}

async function readAll(source: ProfileSource): Promise<Record<string, string>> {
  const out: Record<string, string> = {};
  for (const entry of source.entries) out[entry.path] = (await readWhole(entry, 1 << 20))?.toString('utf8') ?? 'too large';
  return out;
}

const honest: ZipEntry[] = [
  { name: 'rank0/', mode: 0o040755 },
  { name: 'rank0/trace_view.json', data: '[]' },
  { name: 'rank0/kernel_details.csv', data: 'Name,Duration(us)\n', stored: true },
];

describe('zip archives', () => {
  test('files are listed and read without being written anywhere', async () => {
    const source = await openSource(await put('a.zip', zipOf(honest)));
    expect(source.kind).toBe('zip');
    expect(await readAll(source)).toEqual({ 'rank0/trace_view.json': '[]', 'rank0/kernel_details.csv': 'Name,Duration(us)\n' });
    await source.close();
    await expectNothingWritten(['a.zip']);
  });

  const hostile: [string, ZipEntry[]][] = [
    ['a name with ../', [{ name: '../evil.csv', data: 'x' }]],
    ['a name with ../ in the middle', [{ name: 'a/../../evil.csv', data: 'x' }]],
    ['an absolute name', [{ name: '/etc/evil.csv', data: 'x' }]],
    ['a drive letter', [{ name: 'C:/evil.csv', data: 'x' }]],
    ['a backslash', [{ name: 'a\\evil.csv', data: 'x' }]],
    ['a symbolic link', [{ name: 'trace_view.json', data: '/etc/passwd', mode: 0o120777 }]],
    ['an encrypted entry', [{ name: 'trace_view.json', data: 'x', flags: 1 }]],
    ['two entries of one name', [...honest, { name: 'rank0/trace_view.json', data: 'other' }]],
    ['two names that differ in case only', [...honest, { name: 'RANK0/Trace_View.json', data: 'other' }]],
    ['an unknown compression', [{ name: 'trace_view.json', data: 'x', method: 12 }]],
    ['a very long name', [{ name: `${'d/'.repeat(600)}trace_view.json`, data: 'x' }]],
  ];
  test.each(hostile)('%s refuses the archive', async (_, entries) => {
    const error = await refusal(openSource(await put('bad.zip', zipOf(entries))));
    expect(error.code).toBe('bad-zip');
    await expectNothingWritten(['bad.zip']);
  });

  test('an entry that unpacks to more than it says is refused while it is read', async () => {
    const source = await openSource(await put('a.zip', zipOf([{ name: 'trace_view.json', data: 'x'.repeat(100_000), claimedSize: 10 }])));
    const error = await refusal(readWhole(source.entries[0]!, 1 << 20));
    expect(error.message).toMatch(/larger|damaged/);
    await source.close();
  });

  test('an entry that unpacks to less than it says is damaged', async () => {
    const source = await openSource(await put('a.zip', zipOf([{ name: 'trace_view.json', data: 'abc', claimedSize: 100 }])));
    expect((await refusal(readWhole(source.entries[0]!, 1 << 20))).message).toMatch(/damaged/);
    await source.close();
  });

  test.each([true, false])('a wrong checksum is damage (stored: %s)', async (stored) => {
    const source = await openSource(await put('a.zip', zipOf([{ name: 'trace_view.json', data: 'abc', claimedCrc: 1, stored }])));
    expect((await refusal(readWhole(source.entries[0]!, 1 << 20))).message).toMatch(/damaged/);
    await source.close();
  });

  test('a zip cut anywhere is refused or its entries are, never anything else', async () => {
    const whole = zipOf(honest);
    for (let keep = 5; keep < whole.length; keep += 7) {
      const file = await put('cut.zip', whole.subarray(0, keep));
      const outcome = await openSource(file).then(
        async (source) => {
          await readAll(source);
          await source.close();
          return null;
        },
        (e: unknown) => e,
      );
      expect(outcome, `cut at ${keep}`).toBeInstanceOf(AdviseError);
    }
  });

  test('more entries than allowed are refused', async () => {
    const many = Array.from({ length: 30 }, (_, i) => ({ name: `f${i}.csv`, data: 'x' }));
    const error = await refusal(openSource(await put('a.zip', zipOf(many)), { ...DEFAULT_LIMITS, maxEntries: 20 }));
    expect(error.message).toMatch(/more than 20 entries/);
  });

  test('more bytes than allowed are refused before a byte is read', async () => {
    const file = await put('a.zip', zipOf([{ name: 'trace_view.json', data: 'x', claimedSize: 4_000_000_000 }]));
    const error = await refusal(openSource(file, { ...DEFAULT_LIMITS, maxEntryBytes: 1 << 20 }));
    expect(error.message).toMatch(/size limit/);
  });

  test('text with the name of a zip is refused by its content', async () => {
    expect((await refusal(openSource(await put('not.zip', 'hello')))).code).toBe('bad-zip');
  });

  test('a refused archive is closed again', async () => {
    const file = await put('bad.zip', zipOf([{ name: 'trace_view.json', data: 'x', mode: 0o120777 }]));
    const before = (await readdir('/proc/self/fd').catch(() => [])).length;
    for (let i = 0; i < 20; i++) await refusal(openSource(file));
    const after = (await readdir('/proc/self/fd').catch(() => [])).length;
    expect(after - before).toBeLessThan(10);
  });

  test('a reader that stops early leaves nothing open', async () => {
    const source = await openSource(await put('a.zip', zipOf([{ name: 'trace_view.json', data: 'ab'.repeat(4_000_000) }])));
    let first = 0;
    for await (const chunk of source.entries[0]!.open()) {
      first = chunk.length;
      break;
    }
    expect(first).toBeGreaterThan(0);
    await source.close();
  });

  test('an entry is found again from its place by another thread', async () => {
    const source = await openSource(await put('a.zip', zipOf(honest)));
    const open = openPlace();
    const entry = source.entries[0]!;
    const again = await open({ path: 'renamed/trace_view.json', bytes: entry.bytes, place: entry.place });
    expect(again.path).toBe('renamed/trace_view.json');
    expect((await readWhole(again, 100))?.toString()).toBe('[]');
    await source.close();
  });
});

describe('tar archives', () => {
  const entries = [
    { name: './rank0/', type: '5' },
    { name: './rank0/trace_view.json', data: '[]' },
    { name: './rank0/kernel_details.csv', data: 'Name,Duration(us)\n' },
    { name: './rank0/core.bin', data: 'never asked for' },
  ];

  test('plain and gzip give the same files, and the spilled ones vanish on close', async () => {
    const expected = { 'rank0/trace_view.json': '[]', 'rank0/kernel_details.csv': 'Name,Duration(us)\n' };
    for (const [name, data] of [
      ['a.tar', tarOf(entries)],
      ['a.tar.gz', gzipSync(tarOf(entries))],
      ['a.tgz', gzipSync(tarOf(entries))],
    ] as const) {
      const source = await openSource(await put(name, data));
      expect(source.kind).toBe('tar');
      expect(await readAll(source)).toEqual(expected);
      await source.close();
    }
    await expectNothingWritten(['a.tar', 'a.tar.gz', 'a.tgz']);
  });

  test.each([
    ['a name with ../', { name: '../evil.csv', data: 'x' }],
    ['an absolute name', { name: '/tmp/evil.csv', data: 'x' }],
    ['a backslash', { name: 'a\\evil.csv', data: 'x' }],
    ['a symbolic link', { name: 'trace_view.json', type: '2', linkTo: '/etc/passwd' }],
    ['a hard link', { name: 'trace_view.json', type: '1', linkTo: 'other' }],
  ])('%s refuses the archive and takes the spilled files along', async (_, entry) => {
    const error = await refusal(openSource(await put('bad.tar.gz', gzipSync(tarOf([...entries, entry])))));
    expect(error.code).toBe('bad-tar');
    await expectNothingWritten(['bad.tar.gz']);
  });

  test('a truncated tar.gz is refused and leaves nothing', async () => {
    const whole = gzipSync(tarOf([{ name: 'trace_view.json', data: Buffer.alloc(200_000, 'abc') }]));
    await refusal(openSource(await put('cut.tar.gz', whole.subarray(0, whole.length - 60))));
    await expectNothingWritten(['cut.tar.gz']);
  });

  test('too many entries and too many bytes are refused', async () => {
    const file = await put('a.tar', tarOf(entries));
    expect((await refusal(openSource(file, { ...DEFAULT_LIMITS, maxEntries: 2 }))).message).toMatch(/more than 2 entries/);
    expect((await refusal(openSource(file, { ...DEFAULT_LIMITS, maxTotalBytes: 5 }))).message).toMatch(/size limit/);
    await expectNothingWritten(['a.tar']);
  });
});

describe('folders and files', () => {
  test('a folder is listed in name order and symbolic links are not followed', async () => {
    const root = join(dir, 'prof');
    await mkdir(join(root, 'b'), { recursive: true });
    await writeFile(join(root, 'b', 'two.csv'), '2');
    await writeFile(join(root, 'a.csv'), '1');
    await symlink('/etc/passwd', join(root, 'c.csv'));
    await symlink('/', join(root, 'everything'));
    const source = await openSource(root);
    expect(source.entries.map((e) => e.path)).toEqual(['a.csv', 'b/two.csv']);
    expect(source.label).toBe('prof');
    expect((await readFile(join(root, 'a.csv'))).toString()).toBe('1');
    await source.close();
  });

  test('folders deeper than the limit are not searched, more files than allowed are refused', async () => {
    const root = join(dir, 'prof');
    await mkdir(join(root, 'x/y/z'), { recursive: true });
    await writeFile(join(root, 'x/y/z/deep.csv'), '');
    await writeFile(join(root, 'top.csv'), '');
    expect((await openSource(root, { ...DEFAULT_LIMITS, maxDepth: 1 })).entries.map((e) => e.path)).toEqual(['top.csv']);
    await refusal(openSource(root, { ...DEFAULT_LIMITS, maxEntries: 1 }));
  });

  test('what does not exist or is empty is refused with what to give instead', async () => {
    expect((await refusal(openSource(join(dir, 'nowhere')))).code).toBe('not-found');
    expect((await refusal(openSource(await put('empty.json', '')))).code).toBe('empty');
  });

  test('a file larger than asked for is not read into memory', async () => {
    const source = await openSource(await put('trace_view.json', '[1,2,3]'));
    expect(await readWhole(source.entries[0]!, 3)).toBeNull();
    expect((await readWhole(source.entries[0]!, 7))?.toString()).toBe('[1,2,3]');
  });
});
