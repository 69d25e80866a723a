import { describe, expect, test } from 'vitest';
import { findCalls } from '../../src/source/calls.ts';
import { flagUses } from '../../src/source/launch/flags.ts';
import { parseOnce } from '../../src/source/python-files.ts';
import { sourceTreeFrom } from '../../src/source/source-tree-from.ts';
import { descend } from '../../src/source/syntax-tree.ts';
import { givenTo, readValue } from '../../src/source/values.ts';

const LOADER = 'torch.utils.data.DataLoader';
const HEAD = 'import os, argparse, yaml\nfrom torch.utils.data import DataLoader\n';

/** What the one loader of `train.py` gets as `num_workers`: `absent`, `unknown`, a constant, or where an option comes from. */
function workers(body: string, others: Readonly<Record<string, string>> = {}): unknown {
  const tree = sourceTreeFrom({ files: Object.entries({ 'train.py': HEAD + body, ...others }) });
  for (const path of tree.paths) {
    const module = path.endsWith('.py') ? parseOnce(tree, path) : null;
    const [call] = module === null ? [] : findCalls(module, [LOADER]);
    if (!module || !call) continue;
    const given = givenTo(tree, module, call, 'num_workers', 5);
    if (given.kind !== 'given' || given.value.kind === 'unknown') return given.kind === 'absent' ? 'absent' : 'unknown';
    const { value } = given;
    if (value.kind === 'literal') return value.constant;
    const { from, name, at } = value.option;
    return `${from} ${name} ${at.file}:${at.line} = ${String(value.constant)}`;
  }
  return 'no call';
}

const ARGS = "p = argparse.ArgumentParser()\np.add_argument('-j', '--num-workers', type=int, default=2)\nargs = p.parse_args()\n";

describe('what num_workers is', () => {
  test.each([
    ['not there', 'DataLoader(ds)', 'absent'],
    ['a literal', 'DataLoader(ds, num_workers=0)', 0],
    ['by position', 'DataLoader(ds, 8, True, None, None, 4)', 4],
    ['a constant', 'N = 4\nDataLoader(ds, num_workers=N)', 4],
    ['a chain of names', 'N = 4\nM = N\ndef f():\n    k = M\n    DataLoader(ds, num_workers=int(k))', 4],
    ['two branches that agree', 'N = 4 if x else 4\nDataLoader(ds, num_workers=N)', 4],
    ['two branches that differ', 'if x:\n    N = 4\nelse:\n    N = 0\nDataLoader(ds, num_workers=N)', 'unknown'],
    ['None until set', 'N = None\nif x:\n    N = 4\nDataLoader(ds, num_workers=N)', 'unknown'],
    ['a loop variable', 'for n in xs:\n    DataLoader(ds, num_workers=n)', 'unknown'],
    ['augmented', 'N = 4\nN += 1\nDataLoader(ds, num_workers=N)', 'unknown'],
    ['itself', 'N = N\nDataLoader(ds, num_workers=N)', 'unknown'],
    ['the count of cores', 'DataLoader(ds, num_workers=os.cpu_count())', 'unknown'],
    ['argparse', `${ARGS}DataLoader(ds, num_workers=args.num_workers)`, 'argparse --num-workers train.py:4 = 2'],
    [
      'argparse of a string',
      "p.add_argument('--num_workers', type=int, default='3')\nDataLoader(ds, num_workers=args.num_workers)",
      'argparse --num_workers train.py:3 = 3',
    ],
    ['argparse with dest', "p.add_argument('--j', dest='n', default=0)\nDataLoader(ds, num_workers=args.n)", 'argparse --j train.py:3 = 0'],
    ['argparse, computed', `${ARGS}DataLoader(ds, num_workers=max(1, args.num_workers))`, 'unknown'],
    [
      'argparse, arithmetic',
      `${ARGS}DataLoader(ds, num_workers=int(args.num_workers / 2))`,
      'argparse --num-workers train.py:4 = undefined',
    ],
    [
      'argparse, reassigned',
      `${ARGS}args.num_workers = int((args.num_workers + 7) / 8)\nDataLoader(ds, num_workers=args.num_workers)`,
      'argparse --num-workers train.py:4 = undefined',
    ],
    [
      'two subcommands that differ',
      "a.add_argument('--n', default=0)\nb.add_argument('--n', default=4)\nDataLoader(ds, num_workers=args.n)",
      'unknown',
    ],
    ['getattr', `${ARGS}DataLoader(ds, num_workers=getattr(args, 'num_workers', 0))`, 'argparse --num-workers train.py:4 = 2'],
    ['vars', `${ARGS}DataLoader(ds, num_workers=vars(args)['num_workers'])`, 'argparse --num-workers train.py:4 = 2'],
    ['through a local', `${ARGS}w = args.num_workers\nDataLoader(ds, num_workers=w)`, 'argparse --num-workers train.py:4 = 2'],
    ['an object that is no option', `${ARGS}DataLoader(ds, num_workers=machine.num_workers)`, 'unknown'],
    ['environment', "DataLoader(ds, num_workers=int(os.environ.get('NW', '2')))", 'environment NW train.py:3 = 2'],
    ['environment without a default', "DataLoader(ds, num_workers=int(os.environ['NW']))", 'environment NW train.py:3 = undefined'],
    ['a dictionary', "kw = {'num_workers': 1, 'pin_memory': True}\nDataLoader(ds, **kw)", 1],
    ['a dictionary without it', 'kw = dict(pin_memory=True)\nDataLoader(ds, **kw)', 'absent'],
    ['a dictionary that is set', "kw = {}\nkw['num_workers'] = 3\nDataLoader(ds, **kw)", 3],
    ['a dictionary that is updated', "kw = {'num_workers': 1}\nmore = {'num_workers': 5}\nkw.update(more)\nDataLoader(ds, **kw)", 5],
    ['an update under a condition', "kw = {'batch_size': 1}\nif cuda:\n    kw.update({'num_workers': 5})\nDataLoader(ds, **kw)", 'unknown'],
    ['another key under a condition', "kw = {'num_workers': 1}\nif cuda:\n    kw.update({'pin_memory': True})\nDataLoader(ds, **kw)", 1],
    ['a dictionary that another function sees', "kw = {'num_workers': 1}\nfix(kw)\nDataLoader(ds, **kw)", 'unknown'],
    ['a dictionary with computed keys', "kw = {k: 1, 'num_workers': 1}\nDataLoader(ds, **kw)", 1],
    ['computed keys after it', "kw = {'num_workers': 1, k: 1}\nDataLoader(ds, **kw)", 'unknown'],
    ['a dictionary in a dictionary', "base = {'num_workers': 1}\nkw = {**base, 'x': 2}\nDataLoader(ds, **kw)", 1],
    [
      'a wrapper with a default',
      'def make(ds, workers=0):\n    return DataLoader(ds, num_workers=workers)\nmake(a)\nmake(b)',
      'parameter workers train.py:3 = 0',
    ],
    ['a wrapper that is called', 'def make(ds, workers=0):\n    return DataLoader(ds, num_workers=workers)\nmake(a, 4)', 4],
    [
      'a wrapper called with an option',
      `${ARGS}def make(ds, workers=0):\n    return DataLoader(ds, num_workers=workers)\nmake(a, workers=args.num_workers)`,
      'argparse --num-workers train.py:4 = 2',
    ],
    ['callers that differ', 'def make(ds, workers=0):\n    return DataLoader(ds, num_workers=workers)\nmake(a, 4)\nmake(a, 2)', 'unknown'],
    ['a wrapper that hands on **kwargs', 'def make(ds, **kw):\n    return DataLoader(ds, **kw)\nmake(a, num_workers=6)', 6],
    ['**kwargs without it', 'def make(ds, **kw):\n    return DataLoader(ds, **kw)\nmake(a, pin_memory=True)', 'absent'],
    ['**kwargs that nobody passes here', 'def make(ds, **kw):\n    return DataLoader(ds, **kw)', 'unknown'],
    [
      'a class',
      'class D:\n    def __init__(self, n=3):\n        self.n = n\n    def loader(self):\n        return DataLoader(ds, num_workers=self.n)\nD()',
      'parameter n train.py:4 = 3',
    ],
    [
      'a class that is built with it',
      'class D:\n    def __init__(self, n=3):\n        self.n = n\n    def loader(self):\n        return DataLoader(ds, num_workers=self.n)\nD(n=5)',
      5,
    ],
    [
      'a method',
      'class D:\n    def run(self):\n        self.loader(7)\n    def loader(self, n):\n        return DataLoader(ds, num_workers=n)',
      7,
    ],
    ['a constant of a class', 'class Config:\n    workers = 0\nDataLoader(ds, num_workers=Config.workers)', 'class workers train.py:4 = 0'],
    [
      'a dataclass',
      'from dataclasses import dataclass, field\n@dataclass\nclass C:\n    n: int = field(default=0)\ndef f(cfg: C):\n    DataLoader(ds, num_workers=cfg.n)',
      'dataclass n train.py:6 = 0',
    ],
    [
      'a dataclass that is built',
      'from dataclasses import dataclass\n@dataclass\nclass C:\n    n: int = 0\nc = C(n=9)\nDataLoader(ds, num_workers=c.n)',
      9,
    ],
    [
      'click',
      "import click\n@click.command()\n@click.option('--workers', default=0)\ndef main(workers):\n    DataLoader(ds, num_workers=workers)",
      'argparse --workers train.py:5 = 0',
    ],
    ['recursion', 'def f(n=0):\n    DataLoader(ds, num_workers=n)\n    f(n)', 'unknown'],
    ['two functions that call each other', 'def f(n):\n    DataLoader(ds, num_workers=n)\n    g(n)\ndef g(n):\n    f(n)', 'unknown'],
  ])('%s', (_, body, expected) => {
    expect(workers(`${body}\n`)).toBe(expected);
  });

  test.each<[string, string, Record<string, string>, unknown]>([
    ['a constant of another file', 'from conf import N\nDataLoader(ds, num_workers=N)', { 'conf.py': 'N = 4\n' }, 4],
    ['a member of a module', 'import conf\nDataLoader(ds, num_workers=conf.N)', { 'conf.py': 'N = 4\n' }, 4],
    [
      'a re-export',
      'from conf import N\nDataLoader(ds, num_workers=N)',
      { 'conf/__init__.py': 'from .deep import N\n', 'conf/deep.py': 'N = 2\n' },
      2,
    ],
    [
      'imports in a circle',
      'from a import N\nDataLoader(ds, num_workers=N)',
      { 'a.py': 'from b import N\n', 'b.py': 'from a import N\n' },
      'unknown',
    ],
    [
      'arguments of another file',
      'from options import get_args\nargs = get_args()\nDataLoader(ds, num_workers=args.workers)',
      {
        'options.py':
          "def get_args():\n    p = argparse.ArgumentParser()\n    p.add_argument('--workers', default=0)\n    return p.parse_args()\n",
        'other.py': "p.add_argument('--workers', default=8)\n",
      },
      'argparse --workers options.py:3 = 0',
    ],
    [
      'arguments of two unrelated files',
      'DataLoader(ds, num_workers=args.w)',
      { 'a.py': "p.add_argument('--w', default=0)\n", 'b.py': "p.add_argument('--w', default=8)\n" },
      'unknown',
    ],
    [
      'yaml',
      "with open('conf/a.yaml') as f:\n    cfg = yaml.safe_load(f)\nDataLoader(ds, num_workers=cfg['data']['workers'])",
      { 'conf/a.yaml': 'data:\n  # loading\n  workers: 0\n' },
      'yaml data.workers conf/a.yaml:3 = 0',
    ],
    [
      'yaml named by an option',
      "p.add_argument('--config', default='a.yaml')\ncfg = OmegaConf.load(args.config)\nDataLoader(ds, num_workers=cfg.workers)",
      { 'a.yaml': 'workers: 1\n' },
      'yaml workers a.yaml:1 = 1',
    ],
    [
      'hydra',
      "@hydra.main(config_path='conf', config_name='config')\ndef main(cfg):\n    DataLoader(ds, num_workers=cfg.data.workers)",
      { 'conf/config.yaml': 'data:\n  workers: 2\n' },
      'yaml data.workers conf/config.yaml:2 = 2',
    ],
    [
      'yaml that leaves the repository',
      "cfg = OmegaConf.load('../a.yaml')\nDataLoader(ds, num_workers=cfg.workers)",
      { 'a.yaml': 'workers: 1\n' },
      'unknown',
    ],
    [
      'yaml with anchors that are not closed',
      "cfg = OmegaConf.load('a.yaml')\nDataLoader(ds, num_workers=cfg.workers)",
      { 'a.yaml': 'workers: [1\n' },
      'unknown',
    ],
    [
      'dataclasses of a command line',
      'DataLoader(ds, num_workers=data_args.workers)',
      { 'h.py': 'from dataclasses import dataclass\n@dataclass\nclass D:\n    workers: int = 0\n' },
      'dataclass workers h.py:4 = 0',
    ],
    [
      'a factory in another file',
      'from data import make\nmake(ds, workers=4)',
      { 'data.py': 'from torch.utils.data import DataLoader\ndef make(ds, workers=0):\n    return DataLoader(ds, num_workers=workers)\n' },
      4,
    ],
    [
      'a factory of the same name elsewhere',
      'from data import make\nmake(ds, 4)',
      {
        'data.py': 'from torch.utils.data import DataLoader\ndef make(ds, workers=0):\n    return DataLoader(ds, num_workers=workers)\n',
        'z.py': 'from other import make\nmake(ds, 9)\n',
      },
      4,
    ],
  ])('%s', (_, body, others, expected) => {
    expect(workers(`${body}\n`, others)).toBe(expected);
  });

  test('a hostile chain ends', () => {
    const chain = Array.from({ length: 3_000 }, (_, i) => `n${i} = n${i + 1}`).join('\n');
    expect(workers(`${chain}\nDataLoader(ds, num_workers=n0)\n`)).toBe('unknown');
    const wide = Array.from({ length: 60 }, (_, i) => `make(ds, ${i})`).join('\n');
    expect(workers(`def make(ds, n):\n    return DataLoader(ds, num_workers=n)\n${wide}\n`)).toBe('unknown');
  });
});

test('any expression can be read', () => {
  const tree = sourceTreeFrom({ files: [['a.py', "p.add_argument('--accum', default=8)\nx = args.accum\n"]] });
  const module = parseOnce(tree, 'a.py')!;
  const node = [...descend(module.root)].findLast((n) => n.kind === 'attribute')!;
  expect(readValue(tree, module, node)).toMatchObject({ kind: 'option', option: { name: '--accum' }, constant: 8 });
});

test('flags are found in launch scripts', () => {
  const tree = sourceTreeFrom({
    files: [
      ['run.sh', 'torchrun train.py \\\n  --workers 0 \\\n  --workers-extra 3\n# --workers 9\npython a.py --workers=$N\n'],
      ['.github/workflows/p.yml', 'steps:\n  - run: python train.py --workers "2"\n'],
      ['tests/run.sh', 'train.py --workers 4\n'],
      ['train.py', '"--workers 4"\n'],
    ],
  });
  expect(flagUses(tree, '--workers').map(({ file, line, value }) => [file, line, value])).toEqual([
    ['.github/workflows/p.yml', 2, '2'],
    ['run.sh', 2, '0'],
    ['run.sh', 5, null],
  ]);
  expect(flagUses(tree, '--work(ers')).toEqual([]);
});
