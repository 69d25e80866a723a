import { describe, expect, test } from 'vitest';
import { distanceFromStart } from '../../src/source/entry-points.ts';
import { findCallSites } from '../../src/source/find-in-tree.ts';
import { sourceTreeFrom } from '../../src/source/source-tree-from.ts';

const LOOP = "for x in xs:\n    loss.backward()\nif __name__ == '__main__':\n    for x in xs:\n        loss.backward()\n";
const of = (files: Readonly<Record<string, string>>, patches: [string, string][] = []) =>
  sourceTreeFrom({ files: Object.entries(files), patches });
const distances = (files: Readonly<Record<string, string>>) => Object.fromEntries(distanceFromStart(of(files)));

describe('where trainings start', () => {
  test.each<[string, Record<string, string>, Record<string, number>]>([
    [
      'a script on a command line',
      { 'run.sh': 'torchrun --nproc 8 tools/train.py --x 1\n', 'tools/train.py': 'import os\n', 'eval.py': LOOP },
      { 'tools/train.py': 0 },
    ],
    ['beside its launch script', { 'a/run.sh': 'python train.py\n', 'a/train.py': '', 'b/train.py': '' }, { 'a/train.py': 0 }],
    [
      'a module',
      {
        'run.sh': 'python3 -m pkg.main_ppo\n',
        'pkg/main_ppo.py': 'from pkg.data import x\nfrom . import loss\n',
        'pkg/data.py': '',
        'pkg/__init__.py': '',
      },
      { 'pkg/main_ppo.py': 0, 'pkg/data.py': 1, 'pkg/__init__.py': 1 },
    ],
    [
      'no launch script: files that train when they are run',
      { 'train.py': LOOP, 'lib.py': 'def f():\n    loss.backward()\n' },
      { 'train.py': 0 },
    ],
    [
      'imports in a circle',
      { 'run.sh': 'python a.py\n', 'a.py': 'import b\n', 'b.py': 'import a, c\n', 'c.py': '' },
      { 'a.py': 0, 'b.py': 1, 'c.py': 2 },
    ],
    ['tests and examples start nothing', { 'tests/run.sh': 'python train.py\n', 'train.py': '' }, {}],
  ])('%s', (_, files, expected) => {
    expect(distances(files)).toEqual(expected);
  });

  test('calls in reach come first, those that the pull request changes before all', () => {
    const loader = 'from torch.utils.data import DataLoader\nDataLoader(ds)\n';
    const files = { 'a.py': loader, 'run.sh': 'python z.py\n', 'z.py': 'import m\n', 'm.py': loader, 'q.py': loader };
    const order = (patches: [string, string][] = []) =>
      findCallSites(of(files, patches), ['torch.utils.data.DataLoader']).sites.map(({ module }) => module.path);
    expect(order()).toEqual(['m.py', 'a.py', 'q.py']);
    expect(order([['q.py', '@@ -1 +1,2 @@\n+from torch.utils.data import DataLoader\n DataLoader(ds)']])).toEqual(['q.py', 'm.py', 'a.py']);
  });
});
