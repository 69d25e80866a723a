import { describe, expect, test } from 'vitest';
import { analyse } from '../../src/engine/analyse.ts';
import { locate, witnessesOf } from '../../src/engine/locate.ts';
import { firstUserFrame } from '../../src/importers/call-stack.ts';
import { Location, type Report } from '../../src/model/report.ts';
import type { SourceTree } from '../../src/model/source-tree.ts';
import { sourceTreeFrom } from '../../src/source/source-tree-from.ts';
import { openSource } from '../../src/sources/index.ts';
import { DEFAULT_OPTIONS } from '../support/grid.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';

/** A training script shaped as the one that was profiled: the loop over the loader at line 345, `prof.step()` at 375. */
function imagenetScript(shift = 0): string {
  const lines: string[] = Array.from({ length: 540 }, () => '');
  const put = (line: number, text: string): void => {
    lines[line - 1] = text;
  };
  put(1, 'import argparse');
  put(2, 'import torch');
  put(3, 'import torch_npu');
  put(4, 'from torch.utils.data import DataLoader');
  put(10, "parser = argparse.ArgumentParser(description='PyTorch ImageNet Training')");
  put(12, "parser.add_argument('-j', '--workers', default=4, type=int, metavar='N', help='data loading workers')");
  put(100, 'def main_worker(device, args):');
  put(230, '    train_loader = DataLoader(train_dataset, batch_size=args.batch_size, num_workers=args.workers)');
  put(236, '    val_loader = DataLoader(val_dataset, batch_size=args.batch_size, num_workers=args.workers)');
  put(280, '    for epoch in range(args.epochs):');
  put(282, '        train(train_loader, model, criterion, optimizer, epoch, device, args, prof)');
  put(284, '        validate(val_loader, model, args)');
  put(330, 'def train(train_loader, model, criterion, optimizer, epoch, device, args, prof):');
  put(340, '    model.train()');
  put(345, '    for i, (images, target) in enumerate(train_loader):');
  put(350, '        images = images.to(device, non_blocking=True)');
  put(351, '        target = target.to(device, non_blocking=True)');
  put(354, '        output = model(images)');
  put(355, '        loss = criterion(output, target)');
  put(358, '        acc1, acc5 = accuracy(output, target, topk=(1, 5))');
  put(359, '        losses.update(loss.item(), images.size(0))');
  put(360, '        top1.update(acc1[0], images.size(0))');
  put(361, '        top5.update(acc5[0], images.size(0))');
  put(364, '        optimizer.zero_grad()');
  put(365, '        loss.backward()');
  put(366, '        optimizer.step()');
  put(373, '        progress.display(i + 1)');
  put(375, '        prof.step()');
  put(400, 'def validate(val_loader, model, args):');
  put(401, '    for images, target in val_loader:');
  put(402, '        model(images)');
  return `${'# moved\n'.repeat(shift)}${lines.join('\n')}\n`;
}

const repository = (main: string): SourceTree =>
  sourceTreeFrom({
    files: [
      ['main.py', main],
      ['run.sh', 'python main.py -a alexnet --workers 2\n'],
    ],
  });

describe.skipIf(!HAVE_PROFILES)(`text/level1 with its repository${WHY_SKIPPED}`, () => {
  async function report(main: string): Promise<Report> {
    const source = await openSource(PATHS.level1);
    const thresholds = { 'dataloader-stall': { minShare: 0, minMs: 0 } };
    try {
      return await analyse({ sources: [source], options: { ...DEFAULT_OPTIONS, thresholds }, source: repository(main) });
    } finally {
      await source.close();
    }
  }

  test('the stall is on the loop that fetches, the remedy on the loader that is built for it', async () => {
    const { findings } = await report(imagenetScript());
    const stall = findings.find((finding) => finding.rule === 'dataloader-stall')!;
    expect(stall.locations[0]).toEqual({ file: 'main.py', line: 345, symbol: 'train', provenBy: 'call-stack' });
    const [advice] = stall.recommendations;
    expect(advice?.remedy).toBe('dataloader-workers');
    expect(stall.locations.slice(1)).toContainEqual({ file: 'main.py', line: 230, symbol: 'main_worker', provenBy: 'syntax' });
    expect(stall.locations.some(({ line }) => line === 236)).toBe(false);
    for (const { locations } of findings) expect(Location.array().safeParse(locations).success).toBe(true);
    const steps = findings.flatMap((finding) => finding.locations).filter(({ provenBy }) => provenBy === 'profile');
    expect(steps).toEqual([]);
  });
});

test('a line that calls no Python stands as far off as the lines around it that do', () => {
  const frames = [
    { file: '/w/main.py', line: 345, func: 'train', calls: ['__next__'] },
    { file: '/w/main.py', line: 358, func: 'train', calls: ['accuracy'] },
  ];
  const copy = { file: '/w/main.py', line: 350, func: 'train' };
  const at = (shift: number) => {
    const tree = repository(imagenetScript(shift));
    return locate(tree, [copy], witnessesOf(tree, frames)).map(({ line, movedFrom, provenBy }) => [line, movedFrom, provenBy]);
  };
  expect(at(0)).toEqual([[350, undefined, 'call-stack']]);
  expect(at(7)).toEqual([[357, 350, 'call-stack']]);
  // Without a witness the line of the profile happens to hold other code here.
  expect(at(4)).toEqual([[354, 350, 'call-stack']]);
});

describe('a line that only may make the call is no proof', () => {
  const TRAIN =
    'import torch\ndef step(model, x, y):\n    x = x.to(dev)\n    extra = x.float()\n    out = model(x)\n    return loss(out, y)\n';
  const tree = sourceTreeFrom({ files: [['train.py', TRAIN]] });
  const at = (line: number, calls: string[], around: readonly (readonly [line: number, call: string])[] = []) => {
    const witnesses = around.map(([at, call]) => ({ file: '/w/train.py', line: at, func: 'step', calls: [call] }));
    const frame = { file: '/w/train.py', line, func: 'step', calls };
    return locate(tree, [frame], witnessesOf(tree, [...witnesses, frame])).map((place) => place.provenBy);
  };
  test.each<[string, number, string[], string[], (readonly [number, string])[]?]>([
    ['a model, called by another line now', 4, ['_call_impl', 'forward', 'conv'], ['syntax']],
    ['a name from further in', 3, ['_call_impl', 'forward', 'encode', 'to'], ['syntax']],
    ['an operator', 3, [], ['syntax']],
    ['the nearest call', 6, ['loss', 'mean'], ['call-stack']],
    ['the call behind a wrapper', 6, ['wrapper', 'loss'], ['call-stack']],
    [
      'between lines that stand where they stood',
      5,
      ['_call_impl', 'forward'],
      ['call-stack'],
      [
        [3, 'to'],
        [6, 'loss'],
      ],
    ],
    ['only in front of one', 5, ['_call_impl', 'forward'], ['syntax'], [[6, 'loss']]],
  ])('%s', (_, line, calls, expected, around) => {
    expect(at(line, calls, around)).toEqual(expected);
  });
});

describe('places of a finding', () => {
  const SITE = '/usr/lib/python3.10/site-packages';
  const stack = (...frames: string[]) => firstUserFrame(frames.join(';\r\n'))!;
  const files = {
    'bert/run.py': 'def fit(xs):\n    for x in xs:\n        step(x)\n',
    'gpt/run.py': 'def fit(xs):\n    for x in xs:\n        step(x)\n',
  };
  const tree = sourceTreeFrom({ files: Object.entries(files) });

  test('a stack keeps what the repository is needed for', () => {
    expect(
      stack(
        `${SITE}/torch/utils/data/dataloader.py(630): __next__`,
        `${SITE}/transformers/trainer.py(10): inner_loop`,
        `${SITE}/transformers/trainer.py(20): train`,
        '/w/repo/lib/fit.py(7): fit',
        '/w/repo/lib/fit.py(9): main',
        '/w/repo/run.py(3): <module>',
      ),
    ).toEqual({
      file: '/w/repo/lib/fit.py',
      line: 7,
      func: 'fit',
      calls: ['train', 'inner_loop', '__next__'],
      installed: [{ file: `${SITE}/transformers/trainer.py`, line: 10, func: 'inner_loop', calls: ['__next__'] }],
      outer: [{ file: '/w/repo/run.py', line: 3, func: '<module>', calls: ['main', 'fit', 'train', 'inner_loop', '__next__'] }],
    });
    expect(firstUserFrame(`${SITE}/torch/x.py(1): f;\r\n/usr/lib/python3.10/runpy.py(1): run`)).toBeNull();
  });

  test('two files that fit: the word of the profile stays first, both places follow and say so', () => {
    const frame = stack(`${SITE}/torch/_x.py(1): __next__`, '/app/run.py(2): fit');
    expect(locate(tree, [frame])).toEqual([
      { file: '/app/run.py', line: 2, symbol: 'fit', provenBy: 'profile' },
      { file: 'bert/run.py', line: 2, symbol: 'fit', provenBy: 'syntax', oneOf: 2 },
      { file: 'gpt/run.py', line: 2, symbol: 'fit', provenBy: 'syntax', oneOf: 2 },
    ]);
  });

  test('a moved line says where it was', () => {
    const frame = stack(`${SITE}/torch/_x.py(1): __next__`, '/w/bert/run.py(40): fit');
    expect(locate(tree, [frame, frame])).toEqual([{ file: 'bert/run.py', line: 2, symbol: 'fit', provenBy: 'call-stack', movedFrom: 40 }]);
  });

  test('a stack of installed packages only is a place where the repository is one of them, else none', () => {
    const frame = stack(`${SITE}/torch/_x.py(1): __next__`, `${SITE}/bert/run.py(2): fit`);
    expect(frame.isInstalled).toBe(true);
    expect(locate(tree, [frame])).toEqual([]);
    const packaged = sourceTreeFrom({ files: [...Object.entries(files), ['bert/__init__.py', '']] });
    expect(locate(packaged, [frame])).toMatchObject([{ file: 'bert/run.py', line: 2, provenBy: 'call-stack' }]);
  });
});
