import { describe, expect, test } from 'vitest';
import { matchFrame } from '../../src/source/match-frame.ts';
import { sourceTreeFrom } from '../../src/source/source-tree-from.ts';

const TRAIN = 'import torch\n\n\ndef main():\n    for x in xs:\n        step(x)\n\n\n@decorated\ndef other():\n    pass\n';
const tree = sourceTreeFrom({
  files: [
    ['train.py', TRAIN],
    ['bert/train.py', TRAIN],
    ['gpt/run.py', TRAIN],
    ['bert/run.py', TRAIN],
    ['pkg/data/loader.py', 'x = 1\n'],
    ['torch_like/dataloader.py', 'x = 1\n'],
    ['broken.py', 'def main(:\n    x\n'],
  ],
});
const at = (file: string, line: number, func: string | null = null) => matchFrame(tree, { file, line, func });

describe('matchFrame', () => {
  test('the longest suffix wins', () => {
    expect(at('/home/ma-user/code/repo/bert/train.py', 6, 'main')).toEqual({ file: 'bert/train.py', line: 6, symbol: 'main' });
    expect(at('/home/ma-user/code/repo/train.py', 6, 'main')).toEqual({ file: 'train.py', line: 6, symbol: 'main' });
  });

  test('a relative frame fits a longer path of the repository', () => {
    expect(at('loader.py', 1)).toEqual({ file: 'pkg/data/loader.py', line: 1, symbol: null });
    expect(at('./data/loader.py', 1)).toEqual({ file: 'pkg/data/loader.py', line: 1, symbol: null });
  });

  test('two files that fit equally well give nothing', () => {
    expect(at('run.py', 1)).toBeNull();
  });

  test('a folder that contradicts gives nothing', () => {
    expect(at('/w/other/data/loader.py', 1)).toBeNull();
    expect(at('/w/t5/run.py', 1)).toBeNull();
  });

  test('a line beyond the end of the file gives nothing', () => {
    expect(at('/w/repo/train.py', 11)).not.toBeNull();
    expect(at('/w/repo/train.py', 12)).toBeNull();
    expect(at('/w/repo/train.py', 0)).toBeNull();
    expect(at('/w/repo/train.py', 1.5)).toBeNull();
  });

  test('a function that is not around the line means other code', () => {
    expect(at('/w/repo/train.py', 6, 'fit')).toBeNull();
    expect(at('/w/repo/train.py', 1, 'main')).toBeNull();
    expect(at('/w/repo/train.py', 4, 'main')).not.toBeNull();
  });

  test('a tracer may name the line of a decorator', () => {
    expect(at('/w/repo/train.py', 9, 'other')).toEqual({ file: 'train.py', line: 9, symbol: 'other' });
  });

  test('module level and comprehensions have no symbol', () => {
    expect(at('/w/repo/train.py', 5, '<module>')).toEqual({ file: 'train.py', line: 5, symbol: null });
    expect(at('/w/repo/train.py', 5, '')).toEqual({ file: 'train.py', line: 5, symbol: null });
  });

  test('frames of installed packages and of the interpreter are never ours', () => {
    expect(at('/usr/lib/python3.10/site-packages/x/train.py', 5)).toBeNull();
    expect(at('/opt/conda/lib/python3.9/train.py', 5)).toBeNull();
    expect(at('/workspace/torch/train.py', 5)).toBeNull();
    expect(at('<frozen importlib._bootstrap>', 5)).toBeNull();
    expect(at('', 5)).toBeNull();
  });

  test('Windows separators and Chinese folders', () => {
    expect(at('C:\\用户\\repo\\bert\\train.py', 6, 'main')).toMatchObject({ file: 'bert/train.py' });
  });

  test('a file with a syntax error is checked as far as it can be', () => {
    expect(at('/w/repo/broken.py', 2)).toEqual({ file: 'broken.py', line: 2, symbol: null });
  });
});
