import { describe, expect, test } from 'vitest';
import { findCallSites } from '../../src/source/find-in-tree.ts';
import { parseOnce, pythonFilesWith } from '../../src/source/python-files.ts';
import { sourceTreeFrom } from '../../src/source/source-tree-from.ts';

const LOADER = 'torch.utils.data.DataLoader';
const CALL = 'from torch.utils.data import DataLoader\nl = DataLoader(ds)\n';

describe('findCallSites', () => {
  test('finds calls in all files except tests, examples and vendored copies', () => {
    const tree = sourceTreeFrom({
      files: [
        ['a.py', CALL],
        ['pkg/b.py', CALL],
        ['tests/c.py', CALL],
        ['third_party/d.py', CALL],
        ['e.sh', CALL],
      ],
    });
    expect(findCallSites(tree, [LOADER]).sites.map(({ module }) => module.path)).toEqual(['a.py', 'pkg/b.py']);
    expect(findCallSites(tree, [LOADER], ['tests/c.py']).sites.map(({ module }) => module.path)).toEqual([
      'a.py',
      'pkg/b.py',
      'tests/c.py',
    ]);
  });

  test('files that could not be looked into are reported', () => {
    const tree = sourceTreeFrom({
      files: [
        ['a.py', CALL],
        ['deep.py', `DataLoader${'('.repeat(3_000)}${')'.repeat(3_000)}`],
      ],
    });
    const { sites, failures } = findCallSites(tree, [LOADER]);
    expect(sites).toHaveLength(1);
    expect(failures).toMatchObject([{ path: 'deep.py', why: 'too complex' }]);
  });
});

describe('pythonFilesWith', () => {
  test('a file without the word is never parsed', () => {
    const tree = sourceTreeFrom({ files: [['deep.py', `x = ${'('.repeat(3_000)}1${')'.repeat(3_000)}\n`]] });
    expect(pythonFilesWith(tree, ['DataLoader'])).toEqual({ modules: [], failures: [] });
  });

  test('a file is parsed once per tree', () => {
    const tree = sourceTreeFrom({ files: [['a.py', CALL]] });
    expect(parseOnce(tree, 'a.py')).toBe(parseOnce(tree, 'a.py'));
    expect(parseOnce(sourceTreeFrom({ files: [['a.py', CALL]] }), 'a.py')).not.toBe(parseOnce(tree, 'a.py'));
  });

  test('a tree with more Python than the budget is read in part and says so', () => {
    const big = `${CALL}x = "${'a'.repeat(900_000)}"\n`;
    const tree = sourceTreeFrom({ files: ['a', 'b', 'c', 'd', 'e'].map((name) => [`${name}.py`, big] as const) });
    const { sites, failures } = findCallSites(tree, [LOADER]);
    expect([sites.length, failures.length]).toEqual([4, 1]);
    expect(failures[0]!.detail).toContain('in one tree');
  });

  test('a file that cannot be read counts as one that may hold the word', () => {
    const tree = { paths: ['a.py'], read: () => null, inDiff: () => false };
    expect(pythonFilesWith(tree, ['x']).failures).toMatchObject([{ path: 'a.py', why: 'not text' }]);
  });
});
