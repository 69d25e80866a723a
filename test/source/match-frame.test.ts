import { describe, expect, test } from 'vitest';
import { matchFrame, matchStack } from '../../src/source/match-frame.ts';
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

describe('a line must be able to make the call', () => {
  const MAIN = `import torch
from data import build


def train(loader, model, criterion, optimizer, scheduler):
    model.train()
    # a comment
    for i, (images, target) in enumerate(loader):
        images = images.to(device)
        output = model(images)
        loss = criterion(output, target)
        acc1 = accuracy(output, target)
        with record():
            loss.backward()
        optimizer.step()
        log([x.item() for x in losses])


def accuracy(output, target):
    return output.topk(
        5,
        sorted=True,
    )


class Net:
    def forward(self, x):
        return self.block(x)


class Block:
    def forward(self, x):
        return self.conv(x)


def twice(a):
    helper(a)
    helper(a)


train(build(), 1, 2, 3, 4)
`;
  const files = { 'main.py': MAIN, 'a/train.py': MAIN, 'b/train.py': MAIN, 'pkg/deep/main2.py': MAIN };
  const repo = sourceTreeFrom({ files: Object.entries(files) });
  const line = (text: string): number => MAIN.split('\n').findIndex((l) => l.includes(text)) + 1;
  const places = (file: string, at: number, func: string, calls: string[], tree = repo) =>
    matchStack(tree, { file, line: at, func, calls }).map(
      (p) => `${p.file}:${p.line}${p.movedFrom === undefined ? '' : ` was ${p.movedFrom}`}`,
    );
  const main = (at: number, func: string, ...calls: string[]) => places('/w/x/main.py', at, func, calls);

  test.each<[string, number, string, string[], string[]]>([
    ['the loop that fetches', line('for i'), 'train', ['__next__', 'enumerate'], ['main.py:8']],
    ['a named call', line('accuracy(output, target)'), 'train', ['accuracy'], ['main.py:12']],
    ['a model', line('model(images)'), 'train', ['_wrapped_call_impl', '_call_impl', 'forward'], ['main.py:10']],
    ['an optimizer behind its wrapper', line('optimizer.step'), 'train', ['wrapper', 'step'], ['main.py:15']],
    ['a with statement', line('with record'), 'train', ['__enter__'], ['main.py:13']],
    ['a comprehension', line('for x in losses'), 'train', ['<listcomp>'], ['main.py:16']],
    ['an operator of torch', line('images.to'), 'train', [], ['main.py:9']],
    ['inside a call over several lines', line('        5,'), 'accuracy', [], ['main.py:21']],
    ['the module', line('train(build()'), '<module>', ['train'], ['main.py:41']],
    ['a decorated function', line('criterion('), 'train', ['timed', 'criterion'], ['main.py:11']],
    ['the loop has moved', 3, 'train', ['__next__'], ['main.py:8 was 3']],
    ['the call has moved within the function', line('model(images)'), 'train', ['accuracy'], ['main.py:12 was 10']],
    ['the call has moved from a comment', 7, 'train', ['backward'], ['main.py:14 was 7']],
    ['beyond the end', 900, 'train', ['accuracy'], ['main.py:12 was 900']],
    ['moved, and there are two', 2, 'twice', ['helper'], ['main.py:37 was 2', 'main.py:38 was 2']],
    ['one of two, which one is told', 38, 'twice', ['helper'], ['main.py:38']],
    ['a name that stands nowhere, on a line with a call', line('images.to'), 'train', ['patched_to'], ['main.py:9']],
  ])('%s', (_, at, func, calls, expected) => {
    expect(main(at, func, ...calls)).toEqual(expected);
  });

  test.each<[string, number, string, string[]]>([
    ['a comment', 7, 'train', []],
    ['an import', 1, '<module>', ['accuracy']],
    ['another function', line('accuracy(output, target)'), 'accuracy', ['train_step']],
    ['a function that is not there', 9, 'fit', ['accuracy']],
    ['module level, but the line is in a function', 9, '<module>', ['to']],
    ['nothing tells where a module call went', 7, 'train', ['_call_impl', 'forward']],
    ['the wrong method of that name, gone', 3, 'forward', ['attention']],
  ])('no match: %s', (_, at, func, calls) => {
    expect(main(at, func, ...calls)).toEqual([]);
  });

  test('two copies of a file: both are said, unless the path tells', () => {
    expect(places('train.py', 8, 'train', ['__next__'])).toEqual(['a/train.py:8', 'b/train.py:8']);
    expect(places('/w/b/train.py', 8, 'train', ['__next__'])).toEqual(['b/train.py:8']);
  });

  test('another root, as in a container: only where the line proves it', () => {
    expect(places('/app/main2.py', 12, 'train', ['accuracy'])).toEqual(['pkg/deep/main2.py:12']);
    expect(places('/app/main2.py', 11, 'train', ['accuracy'])).toEqual([]);
    expect(places('/app/main2.py', 9, 'train', [])).toEqual([]);
    expect(places('/app/train.py', 12, 'train', ['accuracy'])).toEqual(['a/train.py:12', 'b/train.py:12']);
  });

  test('a renamed file', () => {
    const renamed = { ...repo, renamed: new Map([['old/start.py', 'pkg/deep/main2.py']]) };
    expect(places('/w/old/start.py', 12, 'train', ['accuracy'], renamed)).toEqual(['pkg/deep/main2.py:12']);
    expect(places('/w/old/start.py', 12, 'train', ['accuracy'])).toEqual([]);
  });

  test('the diff tells which of two equal calls a shifted line was', () => {
    const patches = [['main.py', '@@ -1,2 +1,3 @@\n+import torch\n from data import build\n \n']] as const;
    const changed = sourceTreeFrom({ files: [['main.py', MAIN.replace('    helper(a)\n', '    helper(a)\n\n')]], patches });
    expect(places('/w/x/main.py', 38, 'twice', ['helper'], changed)).toEqual(['main.py:39 was 38']);
  });

  const packaged = sourceTreeFrom({
    files: [
      ['verl/__init__.py', ''],
      ['verl/trainer/ray.py', MAIN],
      ['third_party/vllm/__init__.py', ''],
      ['third_party/vllm/engine.py', MAIN],
      ['run.py', 'from verl import go\ngo()\n'],
    ],
  });
  const INSTALLED = '/usr/local/lib/python3.10/site-packages';

  test('an installed copy of the own package', () => {
    expect(places(`${INSTALLED}/verl/trainer/ray.py`, 12, 'train', ['accuracy'], packaged)).toEqual(['verl/trainer/ray.py:12']);
    expect(places(`${INSTALLED}/verl/trainer/ray.py`, 2, 'train', ['accuracy'], packaged)).toEqual(['verl/trainer/ray.py:12 was 2']);
    expect(places(`${INSTALLED}/other/trainer/ray.py`, 12, 'train', ['accuracy'], packaged)).toEqual([]);
    expect(places(`${INSTALLED}/ray.py`, 12, 'train', ['accuracy'], packaged)).toEqual([]);
    expect(places(`${INSTALLED}/vllm/engine.py`, 12, 'train', ['accuracy'], packaged)).toEqual([]);
  });

  test('of a stack the innermost frame that the repository holds', () => {
    const own = { file: '/w/run.py', line: 2, func: '<module>', calls: ['go'] };
    const inside = { file: `${INSTALLED}/verl/trainer/ray.py`, line: 12, func: 'train', calls: ['accuracy'] };
    const foreign = { file: '/opt/Megatron-LM/megatron/core/x.py', line: 12, func: 'train', calls: ['accuracy'] };
    expect(matchStack(packaged, { ...own, installed: [inside] })).toMatchObject([{ file: 'verl/trainer/ray.py' }]);
    expect(matchStack(packaged, { ...foreign, outer: [own] })).toMatchObject([{ file: 'run.py', line: 2 }]);
    expect(matchStack(packaged, own)).toMatchObject([{ file: 'run.py', line: 2 }]);
  });

  test('hostile files end', () => {
    const deep = `def train():\n    ${'('.repeat(3_000)}x${')'.repeat(3_000)}\n`;
    const many = `def train(x):\n${'    helper(x)\n'.repeat(2_000)}`;
    const hostile = sourceTreeFrom({
      files: [
        ['deep.py', deep],
        ['many.py', many],
        ['latin.py', '# -*- coding: latin-1 -*-\ndef train():\n    x = "\uFFFD"\n    go()\n'],
      ],
    });
    expect(places('/w/deep.py', 2, 'train', ['go'], hostile)).toEqual([]);
    expect(places('/w/many.py', 1_900, 'train', ['helper'], hostile)).toEqual(['many.py:1900']);
    expect(places('/w/many.py', 1, 'train', ['helper'], hostile)).toEqual([]);
    expect(places('/w/latin.py', 4, 'train', ['go'], hostile)).toEqual(['latin.py:4']);
  });
});
