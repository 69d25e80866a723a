import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { FOLDER_LIMITS, folderSourceTree } from '../../src/source/folder-source-tree.ts';
import { isAside, isReadable } from '../../src/source/readable-paths.ts';
import { sourceTreeFrom } from '../../src/source/source-tree-from.ts';

describe('sourceTreeFrom', () => {
  const tree = sourceTreeFrom({
    files: [
      ['train.py', 'a\nb\nc\nd\n'],
      ['scripts/run.sh', 'torchrun train.py\n'],
      ['README.md', 'no'],
      ['../outside.py', 'no'],
      ['/etc/x.py', 'no'],
      ['a\\b.py', 'no'],
      ['bin.py', 'x\0y'],
      ['big.py', 'x'.repeat(1_000_001)],
    ],
    patches: [
      ['train.py', '@@ -1,2 +1,3 @@\n a\n+b\n c'],
      ['scripts/run.sh', null],
    ],
  });

  test('holds small texts of the kinds advice can be about', () => {
    expect(tree.paths).toEqual(['scripts/run.sh', 'train.py']);
    expect(tree.read('train.py')).toBe('a\nb\nc\nd\n');
    expect([tree.read('README.md'), tree.read('../outside.py'), tree.read('bin.py'), tree.read('big.py'), tree.read('toString')]).toEqual([
      null,
      null,
      null,
      null,
      null,
    ]);
  });

  test('knows which lines the pull request shows', () => {
    expect(tree.inDiff('train.py', 1, 3)).toBe(true);
    expect(tree.inDiff('train.py', 3, 4)).toBe(false);
    expect(tree.inDiff('scripts/run.sh', 1, 1)).toBe(false);
    expect(tree.inDiff('other.py', 1, 1)).toBe(false);
  });
});

describe('folderSourceTree', () => {
  const folder = mkdtempSync(join(tmpdir(), 'source-tree-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const put = (path: string, text: string | Uint8Array) => {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  put('train.py', '# 训练\n');
  put('pkg/model.py', 'x = 1\r\n');
  put('Dockerfile', 'FROM scratch\n');
  put('requirements-npu.txt', 'torch_npu\n');
  put('notes.txt', 'no');
  put('.github/workflows/ci.yml', 'on: push\n');
  put('.git/hook.py', 'no');
  put('node_modules/a/setup.py', 'no');
  put('venv/lib/python3.11/site-packages/torch/x.py', 'no');
  put('latin.py', Uint8Array.of(0x23, 0xe9, 0x0a));
  put('big.py', 'x'.repeat(1_000_001));
  symlinkSync('/etc', join(folder, 'linked'));
  symlinkSync('/etc/passwd', join(folder, 'passwd.py'));

  test('reads the small set of kinds, skips environments, links and large files', () => {
    const tree = folderSourceTree(folder);
    expect(tree.paths).toEqual(['.github/workflows/ci.yml', 'Dockerfile', 'latin.py', 'pkg/model.py', 'requirements-npu.txt', 'train.py']);
    expect(tree.read('train.py')).toBe('# 训练\n');
    expect(tree.read('pkg/model.py')).toBe('x = 1\r\n');
    expect(tree.notes).toEqual(['files larger than 1000000 bytes were not read']);
  });

  test('a file that is not UTF-8, a link and a path outside read as null', () => {
    const tree = folderSourceTree(folder);
    expect([tree.read('latin.py'), tree.read('passwd.py'), tree.read('../x.py'), tree.read('.git/hook.py')]).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });

  test('no line counts as changed', () => {
    expect(folderSourceTree(folder).inDiff('train.py', 1, 1)).toBe(false);
  });

  test('stops at its limits and says so', () => {
    const few = folderSourceTree(folder, { ...FOLDER_LIMITS, maxFiles: 1 });
    expect(few.paths).toEqual(['Dockerfile']);
    expect(few.notes.at(-1)).toBe('the source folder was read in part: more than 1 files');
    expect(folderSourceTree(folder, { ...FOLDER_LIMITS, maxBytes: 20 }).notes.at(-1)).toMatch(/more than 20 bytes/);
    expect(folderSourceTree(folder, { ...FOLDER_LIMITS, maxEntries: 3 }).notes.at(-1)).toMatch(/more than 3 entries/);
    expect(folderSourceTree(folder, { ...FOLDER_LIMITS, maxDepth: 0 }).paths).not.toContain('pkg/model.py');
  });

  test('a folder that is not there is an error with a hint', () => {
    expect(() => folderSourceTree(join(folder, 'absent'))).toThrow(expect.objectContaining({ code: 'source-unreadable' }));
  });
});

describe('which files count', () => {
  test.each([
    'train.py',
    'a/b/run.sh',
    'ci.yaml',
    'pyproject.toml',
    'requirements.txt',
    'requirements/dev.py',
    'Dockerfile',
    'docker/Dockerfile.npu',
  ])('%s is read', (path) => expect(isReadable(path)).toBe(true));
  test.each(['a.txt', 'a.ipynb', 'a.pyc', 'site-packages/a.py', 'x/.git/a.py', 'requirements.lock', 'a.md'])('%s is not', (path) =>
    expect(isReadable(path)).toBe(false),
  );
  test.each(['tests/train.py', 'a/test/x.py', 'examples/train.py', 'third_party/x.py', 'pkg/test_model.py', 'setup.py'])(
    '%s lies aside',
    (path) => expect(isAside(path)).toBe(true),
  );
  test.each(['train.py', 'src/latest/train.py', 'contest/train.py', 'pkg/testament.py', 'tools/train.py'])('%s does not', (path) =>
    expect(isAside(path)).toBe(false),
  );
});
