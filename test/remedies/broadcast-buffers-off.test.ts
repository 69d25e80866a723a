import { describe, expect, test } from 'vitest';
import { applied, repository } from './repository.ts';
import { adviceOf } from './situations.ts';

const ID = 'broadcast-buffers-off';
const IMPORT = 'from torch.nn.parallel import DistributedDataParallel as DDP\n';
const TRAIN = `${IMPORT}\nmodel = DDP(model, device_ids=[local_rank])\n`;

const NN = 'from torch import nn\nclass M(nn.Module):\n    def __init__(self):\n';

const kindOf = (files: Readonly<Record<string, string>>, inDiff?: readonly string[], finding = {}) =>
  adviceOf(ID, { source: repository(files, inDiff) }, finding)!.edits.map((edit) => edit.kind);

describe('one click', () => {
  test.each([
    ['one line', TRAIN, `${IMPORT}\nmodel = DDP(model, device_ids=[local_rank], broadcast_buffers=False)\n`],
    [
      'several lines, CRLF and a Chinese comment',
      `${IMPORT}model = DDP(\n    model,\n    device_ids=[local_rank],  # 本卡\n)\n`.replaceAll('\n', '\r\n'),
      `${IMPORT}model = DDP(\n    model,\n    device_ids=[local_rank],  # 本卡\n    broadcast_buffers=False,\n)\n`.replaceAll('\n', '\r\n'),
    ],
    [
      'the full name',
      'import torch\nm = torch.nn.parallel.DistributedDataParallel(m)\n',
      'import torch\nm = torch.nn.parallel.DistributedDataParallel(m, broadcast_buffers=False)\n',
    ],
  ])('%s', (_, before, after) => {
    const source = repository({ 'train.py': before });
    const [edit] = adviceOf(ID, { source })!.edits;
    expect(edit!.kind).toBe('suggestion');
    expect(applied(source, edit!)).toBe(after);
  });

  test('constant buffers, plain SGD momentum and SyncBatchNorm do not stand in the way', () => {
    const model =
      'import torch\nclass Rope(torch.nn.Module):\n    def __init__(self):\n        self.register_buffer("cos_table", table, persistent=False)\n    def forward(self, x):\n        return x * self.cos_table[: x.shape[1]]\n';
    const rest =
      'opt = torch.optim.SGD(p, lr=0.1, momentum=0.9)\nmodel = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)\nbn = torch.nn.BatchNorm2d(8)\nmodel.eval()\n';
    expect(kindOf({ 'train.py': TRAIN, 'model.py': model, 'rest.py': rest })).toEqual(['suggestion']);
  });

  test.each([
    [
      'known packages',
      'import os, sys\nimport numpy as np\nfrom tqdm import tqdm\nfrom transformers import AutoTokenizer, get_cosine_schedule_with_warmup\n',
    ],
    ['its own package', 'from model import Net\n'],
    ['a constant buffer object', `${NN}        self.mask = nn.Buffer(ones)\n    def forward(self, x):\n        return x * self.mask\n`],
    [
      'buffers that are only read, counted and saved',
      'self.register_buffer("cos", s)\ny = rotate(x, self.cos)\nn = sum(b.numel() for b in model.buffers())\nfor k, v in model.state_dict().items():\n    print(k, v)\ndef rotate(x, cos):\n    return x * cos\n',
    ],
    ['BatchNorm that only trains', 'bn = torch.nn.BatchNorm2d(8)\nmodel.train()\nmodel.train(True)\n'],
  ])('%s', (_, text) => {
    expect(kindOf({ 'train.py': TRAIN, 'model.py': text })).toEqual(['suggestion']);
  });

  test('BatchNorm with an evaluation that only rank 0 reaches', () => {
    const bn = 'bn = torch.nn.BatchNorm2d(8)\nif dist.get_rank() == 0:\n    model.eval()\n';
    expect(kindOf({ 'train.py': TRAIN, 'model.py': bn })).toEqual(['suggestion']);
  });

  test('applying it twice changes nothing: the second time there is no advice', () => {
    const source = repository({ 'train.py': TRAIN });
    const after = applied(source, adviceOf(ID, { source })!.edits[0]!);
    expect(adviceOf(ID, { source: repository({ 'train.py': after }) })).toBeNull();
  });

  test('the preconditions are always listed', () => {
    expect(adviceOf(ID, { source: repository({ 'train.py': TRAIN }) })!.preconditions).toHaveLength(2);
    expect(adviceOf(ID)!.preconditions).toHaveLength(2);
  });
});

describe('comment only', () => {
  test.each<[string, Record<string, string>]>([
    ['momentum encoder', { 'model.py': 'def _momentum_update_key_encoder(self):\n    pass\n' }],
    ['moving average of the model', { 'model.py': 'class ModelEMA:\n    pass\n' }],
    ['moving average as an attribute', { 'model.py': 'self.ema_decay = 0.9\n' }],
    ['an imported vector quantiser', { 'model.py': 'from vector_quantize_pytorch import VectorQuantize\n' }],
    ['an imported moving average', { 'model.py': 'from timm.utils import ModelEmaV2\n' }],
    ['annotated assignment to a buffer', { 'model.py': 'self.register_buffer("scale", s)\nself.scale: Tensor = x\n' }],
    ['queue of keys', { 'model.py': 'self.register_buffer("queue", torch.randn(8))\n' }],
    ['codebook', { 'model.py': 'class VectorQuantizer:\n    def __init__(self):\n        self.codebook = x\n' }],
    ['buffer assigned in forward', { 'model.py': 'self.register_buffer("scale", s)\ndef forward(self, x):\n    self.scale = x.mean()\n' }],
    ['buffer added to in place', { 'model.py': 'self.register_buffer("steps", s)\nself.steps += 1\n' }],
    ['buffer changed by an in-place method', { 'model.py': 'self.register_buffer("scale", s)\nself.scale.mul_(0.9).add_(x)\n' }],
    ['buffer changed through data', { 'model.py': 'self.register_buffer("scale", s)\nself.scale.data.copy_(x)\n' }],
    ['part of a buffer written', { 'model.py': 'self.register_buffer("bank", s)\nself.bank[:, ptr:ptr + n[0]] = keys\n' }],
    ['buffer written from another file', { 'model.py': 'self.register_buffer("scale", s)\n', 'loop.py': 'model.module.scale.fill_(1)\n' }],
    ['buffer as the output of an operation', { 'model.py': 'self.register_buffer("scale", s)\ntorch.add(a, b, out=self.scale)\n' }],
    ['buffer with a computed name', { 'model.py': 'self.register_buffer(name, s)\n' }],
    ['spectral norm', { 'model.py': 'layer = torch.nn.utils.spectral_norm(layer)\n' }],
    ['quantisation', { 'model.py': 'from torch.ao.quantization import prepare_qat\n' }],
    ['observer', { 'model.py': 'x = MinMaxObserver()\n' }],
    ['BatchNorm with evaluation on all ranks', { 'model.py': 'bn = torch.nn.BatchNorm2d(8)\nmodel.eval()\n' }],
    ['a model zoo with evaluation on all ranks', { 'model.py': 'from torchvision import models\nmodel.eval()\n' }],
    ['evaluation guarded only in its else', { 'model.py': 'import timm\nif rank == 0:\n    pass\nelse:\n    model.eval()\n' }],
    [
      'a buffer object',
      { 'model.py': `${NN}        self.center = nn.Buffer(zero)\n    def forward(self, x):\n        self.center.mul_(0.9)\n` },
    ],
    ['a buffer object made later', { 'model.py': 'from torch import nn\ndef forward(self, x):\n    self.c = nn.Buffer(x.mean())\n' }],
    ['in place behind a call', { 'model.py': 'self.register_buffer("c", s)\nself.model.c.detach().view(-1).mul_(0.9)\n' }],
    ['in place on the next line', { 'model.py': 'self.register_buffer("c", s)\n(\n    self.c.detach()\n    .mul_(0.9)\n)\n' }],
    ['by another name', { 'model.py': 'self.register_buffer("c", s)\nc = self.c.detach()\nc.mul_(0.9)\n' }],
    ['several targets', { 'model.py': 'self.register_buffer("c", s)\nself.c, self.d = stats(x)\n' }],
    ['BatchNorm and train(False)', { 'model.py': 'bn = torch.nn.BatchNorm2d(8)\nmodel.train(False)\n' }],
    ['BatchNorm and train(mode=False)', { 'model.py': 'bn = torch.nn.BatchNorm2d(8)\nmodel.train(mode=False)\n' }],
    ['BatchNorm and train(mode)', { 'model.py': 'bn = torch.nn.BatchNorm2d(8)\nmodel.train(is_training)\n' }],
    ['BatchNorm and training = False', { 'model.py': 'bn = torch.nn.BatchNorm2d(8)\nmodel.training = False\n' }],
    [
      'BatchNorm, evaluation on one rank of each node',
      { 'model.py': 'bn = torch.nn.BatchNorm2d(8)\nif local_rank == 0:\n    model.eval()\n' },
    ],
    ['running statistics of an instance norm', { 'model.py': 'n = nn.InstanceNorm2d(8, track_running_stats=True)\nmodel.eval()\n' }],
    ['models of transformers', { 'model.py': 'from transformers import SegformerForSemanticSegmentation\n' }],
    ['models of diffusers', { 'model.py': 'import diffusers\n' }],
    ['models of somebody', { 'model.py': 'from os import path\nfrom lightly.models import Moby\n' }],
    [
      'a function that changes what it is handed',
      { 'model.py': 'self.register_buffer("bank", s)\nself.push(self.bank, x)\n', 'own.py': 'def push(bank, x):\n    bank[0] = x\n' },
    ],
    [
      'a function that adds to it',
      { 'model.py': 'self.register_buffer("c", s)\nsmooth(old=self.c)\ndef smooth(old: T = 0):\n    old *= 0.9\n' },
    ],
    ['a collective over a buffer', { 'model.py': 'self.register_buffer("c", s)\ndist.all_reduce(self.c)\n' }],
    [
      'a function with a collective',
      { 'model.py': 'self.register_buffer("c", s)\nmeet(self.c)\ndef meet(t):\n    dist.broadcast(t, src=0)\n' },
    ],
    ['all buffers of a model', { 'model.py': 'for b in model.buffers():\n    b.mul_(0.9)\n' }],
    ['all buffers by their names', { 'model.py': 'for _, b in model.named_buffers():\n    dist.broadcast(b, 0)\n' }],
    ['a list of the buffers', { 'model.py': 'torch._foreach_mul_(list(model.buffers()), 0.9)\n' }],
    ['the values of the state', { 'model.py': 'for k, v in model.state_dict().items():\n    v.copy_(other[k])\n' }],
    ['a file that cannot be read', { 'model.py': 'x = 1\n' }],
  ])('%s', (name, files) => {
    const source = repository({ 'train.py': TRAIN, ...files });
    const tree =
      name === 'a file that cannot be read'
        ? { ...source, read: (path: string) => (path === 'model.py' ? null : source.read(path)) }
        : source;
    const advice = adviceOf(ID, { source: tree })!;
    expect(advice.edits.map((edit) => edit.kind)).toEqual(['comment-only']);
    expect(advice.text.en).toContain('To look at first: ');
    expect(advice.text.zh).toContain('需先确认：');
  });

  test('lines outside the diff', () => {
    expect(kindOf({ 'train.py': TRAIN }, [])).toEqual(['comment-only']);
  });

  test('a call that is only partly in the diff', () => {
    const text = `${IMPORT}model = DDP(\n    model,\n    device_ids=[local_rank],\n)\n`;
    const source = repository({ 'train.py': text }, []);
    const partly = { ...source, inDiff: (_: string, start: number, end: number) => start >= 3 && end <= 5 };
    expect(adviceOf(ID, { source: partly })!.edits.map((edit) => edit.kind)).toEqual(['comment-only']);
  });

  test('low confidence of the finding', () => {
    expect(kindOf({ 'train.py': TRAIN }, undefined, { confidence: 'low' })).toEqual(['comment-only']);
  });

  test('the name may be rebound', () => {
    const apex =
      'try:\n    from apex.parallel import DistributedDataParallel as DDP\nexcept ImportError:\n    from torch.nn.parallel import DistributedDataParallel as DDP\nm = DDP(m)\n';
    expect(kindOf({ 'train.py': apex })).toEqual(['comment-only']);
  });

  test('True on purpose', () => {
    const source = repository({ 'train.py': `${IMPORT}m = DDP(m, broadcast_buffers=True)\n` });
    const [edit] = adviceOf(ID, { source })!.edits;
    expect([edit!.kind, edit!.after]).toEqual(['comment-only', 'm = DDP(m, broadcast_buffers=False)']);
  });

  test('an example that the profile proves to run', () => {
    const file = 'examples/train.py';
    const locations = [{ file, line: 3, symbol: null, provenBy: 'call-stack' as const }];
    expect(kindOf({ [file]: TRAIN }, undefined, { locations })).toEqual(['comment-only']);
  });
});

describe('no edit', () => {
  test.each([
    ['**kwargs', `${IMPORT}m = DDP(m, **options)\n`],
    ['*args', `${IMPORT}m = DDP(*parts)\n`],
    ['a value from an expression', `${IMPORT}m = DDP(m, broadcast_buffers=args.broadcast)\n`],
    ['two calls', `${IMPORT}a = DDP(a)\nb = DDP(b)\n`],
    ['a file with a syntax error', `${IMPORT}m = DDP(m)\nif x\n`],
    ['another class of the same name', 'from .parallel import DistributedDataParallel as DDP\nm = DDP(m)\n'],
    ['a framework', 'from accelerate import Accelerator\n'],
  ])('%s', (_, text) => {
    const advice = adviceOf(ID, { source: repository({ 'train.py': text }) })!;
    expect(advice.edits).toEqual([]);
    expect(advice.code).toContain('broadcast_buffers=False');
  });

  test('a test or an example that nothing proves is not even looked at', () => {
    const advice = adviceOf(ID, { source: repository({ 'tests/train.py': TRAIN, 'examples/x.py': TRAIN }) })!;
    expect([advice.edits, advice.locations]).toEqual([[], []]);
  });

  test('no advice at all when there are no buffers or the source is off already', () => {
    expect(adviceOf(ID, { params: { buffers: 0 } })).toBeNull();
    expect(adviceOf(ID, { source: repository({ 'train.py': `${IMPORT}m = DDP(m, broadcast_buffers=False)\n` }) })).toBeNull();
    expect(adviceOf(ID, { source: repository({ 'train.py': `${IMPORT}m = DDP(m, [0], 0, 0, False)\n` }) })).toBeNull();
  });
});

test('the call the profile points at comes first', () => {
  const text = `${IMPORT}def a():\n    return DDP(x)\n\ndef b():\n    return DDP(y)\n`;
  const locations = [{ file: 'train.py', line: 6, symbol: 'b', provenBy: 'call-stack' as const }];
  expect(adviceOf(ID, { source: repository({ 'train.py': text }) }, { locations })!.locations).toEqual([
    { file: 'train.py', line: 6, symbol: 'b' },
    { file: 'train.py', line: 3, symbol: 'a' },
  ]);
});

test('a file name with a backtick cannot leave its literal', () => {
  const advice = adviceOf(ID, { source: repository({ 'train.py': TRAIN, 'a`b.py': 'spectral_norm(x)\n' }) })!;
  expect(advice.text.en).toContain('`aˋb.py:1`');
});
