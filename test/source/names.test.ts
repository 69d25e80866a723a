import { describe, expect, test } from 'vitest';
import { findCalls } from '../../src/source/calls.ts';
import { namesOf } from '../../src/source/names.ts';
import { parsePython } from '../../src/source/python-parser.ts';

const DDP = 'torch.nn.parallel.DistributedDataParallel';
const LOADER = 'torch.utils.data.DataLoader';
const MODE = 'torch_npu.npu.set_compile_mode';

const found = (text: string, wanted: readonly string[] = [DDP]) =>
  findCalls(parsePython('a.py', text).module!, wanted).map((call) => ({
    name: call.name,
    written: call.written,
    candidates: call.candidates,
  }));

describe('import aliases', () => {
  test.each([
    ['from torch.nn.parallel import DistributedDataParallel as DDP\nm = DDP(m)\n'],
    ['from torch.nn.parallel import DistributedDataParallel\nm = DistributedDataParallel(m)\n'],
    ['from torch.nn.parallel import (\n    DataParallel,\n    DistributedDataParallel as D,  # 并行\n)\nm = D(m)\n'],
    ['import torch.nn as nn\nm = nn.parallel.DistributedDataParallel(m)\n'],
    ['import torch\nm = torch.nn.parallel.DistributedDataParallel(m)\n'],
    ['import torch.nn.parallel\nm = torch.nn.parallel.DistributedDataParallel(m)\n'],
    ['from torch import nn\nm = nn.parallel.DistributedDataParallel(m)\n'],
    ['from torch.nn import parallel as p\nm = p.DistributedDataParallel(m)\n'],
    ['from torch.nn.parallel.distributed import DistributedDataParallel\nm = DistributedDataParallel(m)\n'],
    ['def main():\n    from torch.nn.parallel import DistributedDataParallel as DDP\n    m = DDP(m)\n'],
    ['import torch\nDDP = torch.nn.parallel.DistributedDataParallel\nm = DDP(m)\n'],
    ['try:\n    import torch\nexcept ImportError:\n    torch = None\nm = torch.nn.parallel.DistributedDataParallel(m)\n'],
    ['import torch\nm = torch.nn.parallel . DistributedDataParallel(m)\n'],
  ])('%j is the core class', (text) => {
    expect(found(text)).toMatchObject([{ name: DDP }]);
  });

  test('torch.npu, torch_npu.npu and the private module are one function', () => {
    for (const text of [
      'import torch_npu\ntorch_npu.npu.set_compile_mode(jit_compile=True)\n',
      'import torch, torch_npu\ntorch.npu.set_compile_mode(jit_compile=True)\n',
      'from torch_npu.npu import set_compile_mode as mode\nmode(jit_compile=True)\n',
      'from torch_npu.npu.npu_config import set_compile_mode\nset_compile_mode(jit_compile=True)\n',
      'from torch import npu\nnpu.set_compile_mode(jit_compile=True)\n',
    ]) {
      expect(found(text, [MODE])).toMatchObject([{ name: MODE }]);
    }
  });

  test('the loader is found through its package, its module and its file', () => {
    for (const text of [
      'from torch.utils.data import DataLoader\nl = DataLoader(d)\n',
      'import torch.utils.data as data\nl = data.DataLoader(d)\n',
      'from torch.utils import data\nl = data.DataLoader(d)\n',
      'from torch.utils.data.dataloader import DataLoader\nl = DataLoader(d)\n',
      'import torch\nl = torch.utils.data.DataLoader(d)\n',
    ]) {
      expect(found(text, [LOADER])).toMatchObject([{ name: LOADER }]);
    }
  });
});

describe('names that are not certain', () => {
  test('two imports under one name leave it open, but both are candidates', () => {
    const text =
      'try:\n    from apex.parallel import DistributedDataParallel as DDP\nexcept ImportError:\n    from torch.nn.parallel import DistributedDataParallel as DDP\nm = DDP(m)\n';
    expect(found(text)).toEqual([{ name: null, written: 'DDP', candidates: ['apex.parallel.DistributedDataParallel', DDP] }]);
  });

  test.each([
    ['class', 'class DDP: pass\n'],
    ['def', 'def DDP(m): return m\n'],
    ['assignment', 'DDP = wrap()\n'],
    ['tuple assignment', 'DDP, x = wrap()\n'],
    ['loop variable', 'for DDP in xs: pass\n'],
    ['walrus', '(DDP := wrap())\n'],
    ['with', 'with wrap() as DDP: pass\n'],
    ['except', 'try: pass\nexcept E as DDP: pass\n'],
    ['global in a function', 'def f():\n    global DDP\n    DDP = wrap()\n'],
  ])('a %s of the same name leaves it open', (_, rebinding) => {
    const text = `from torch.nn.parallel import DistributedDataParallel as DDP\n${rebinding}m = DDP(m)\n`;
    expect(found(text)).toMatchObject([{ name: null, candidates: [DDP] }]);
  });

  test('a parameter hides the import inside its function only', () => {
    const text = 'from torch.nn.parallel import DistributedDataParallel as DDP\ndef f(DDP, m):\n    return DDP(m)\nx = DDP(m)\n';
    expect(found(text)).toEqual([{ name: DDP, written: 'DDP', candidates: [DDP] }]);
  });

  test('a local of another function does not matter', () => {
    const text = 'from torch.nn.parallel import DistributedDataParallel as DDP\ndef f():\n    DDP = 3\nx = DDP(m)\n';
    expect(found(text)).toMatchObject([{ name: DDP }]);
  });

  test('a class attribute is not seen by its methods', () => {
    const text =
      'from torch.nn.parallel import DistributedDataParallel as DDP\nclass A:\n    DDP = 3\n    def f(self, m):\n        return DDP(m)\n';
    expect(found(text)).toMatchObject([{ name: DDP }]);
  });

  test('a star import makes a candidate, never a certainty', () => {
    expect(found('from torch.utils.data import *\nl = DataLoader(d)\n', [LOADER])).toMatchObject([{ name: null, candidates: [LOADER] }]);
  });

  test('a class of the same name from elsewhere is not found', () => {
    expect(found('from .loader import DataLoader\nl = DataLoader(d)\n', [LOADER])).toEqual([]);
    expect(found('from dgl.dataloading import DataLoader\nl = DataLoader(d)\n', [LOADER])).toEqual([]);
    expect(found('l = DataLoader(d)\n', [LOADER])).toEqual([]);
    expect(found('l = self.DataLoader(d)\n', [LOADER])).toEqual([]);
  });

  test('aliases in a circle end', () => {
    expect(found('a = b\nb = a\na(1)\n')).toEqual([]);
    expect(found(`${'x = x.a\n'.repeat(3_000)}x(1)\n`)).toEqual([]);
  });
});

test('imports are listed by their canonical names', () => {
  const text =
    'import torch.npu\nfrom accelerate import Accelerator\nimport deepspeed as ds\nfrom transformers import *\nfrom .a import b\n';
  expect(namesOf(parsePython('a.py', text).module!).imports).toEqual(
    expect.arrayContaining(['torch_npu.npu', 'accelerate.Accelerator', 'deepspeed', 'transformers', '.a.b']),
  );
});
