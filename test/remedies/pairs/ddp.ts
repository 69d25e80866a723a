import type { PairSet, Row } from './pair.ts';

const DDP = 'from torch.nn.parallel import DistributedDataParallel as DDP\n';
const ON = 'm = DDP(m)\n';
const OFF = 'm = DDP(m, broadcast_buffers=False)\n';
const QUEUE = (level: number): string => `export TASK_QUEUE_ENABLE=${level}\ntorchrun train.py\n`;
const CHECKED = (text: string): readonly [string, string] => [text + ON, text + OFF];

export const DDP_PAIRS: readonly PairSet[] = [
  {
    pattern: 'P1 buffers broadcast',
    remedy: 'broadcast-buffers-off',
    prelude: DDP,
    over: { params: { broadcasts: 48, exposedMs: 19 } },
    rows: [
      ['absent', ON, OFF, 'suggestion'],
      [
        'several lines',
        'm = DDP(\n    m,\n    device_ids=[local_rank],\n)\n',
        'm = DDP(\n    m,\n    device_ids=[local_rank],\n    broadcast_buffers=False,\n)\n',
        'suggestion',
      ],
      ['constant buffers', ...CHECKED('class M:\n    def __init__(self):\n        self.register_buffer("mask", ones)\n'), 'suggestion'],
      [
        'a buffer that is updated',
        ...CHECKED(
          'class M:\n    def __init__(self):\n        self.register_buffer("count", zero)\n    def forward(self, x):\n        self.count += 1\n',
        ),
        'comment-only',
      ],
      ['a queue', ...CHECKED('class M:\n    def __init__(self):\n        self.register_buffer("queue", zero)\n'), 'comment-only'],
      ['an average', ...CHECKED('class ModelEMA:\n    pass\n'), 'comment-only'],
      ['a codebook', ...CHECKED('class M:\n    def __init__(self):\n        self.codebook = table()\n'), 'comment-only'],
      ['momentum encoder', ...CHECKED('def update_momentum_encoder():\n    pass\n'), 'comment-only'],
      ['spectral norm', ...CHECKED('layer = spectral_norm(layer)\n'), 'comment-only'],
      ['an observer', ...CHECKED('q = MinMaxObserver()\n'), 'comment-only'],
      ['batch norm and an evaluation on all ranks', ...CHECKED('bn = nn.BatchNorm2d(8)\nmodel.eval()\n'), 'comment-only'],
      ['no buffers', ON, null, undefined, { params: { buffers: 0 } }],
      ['written as True', 'm = DDP(m, broadcast_buffers=True)\n', OFF, 'comment-only'],
      ['off already', OFF, null],
      ['an option', 'm = DDP(m, broadcast_buffers=args.sync)\n', null],
      ['**kwargs', 'm = DDP(m, **kw)\n', null],
      ['two wrapped models', 'a = DDP(a)\nb = DDP(b)\n', null],
      [
        'a class of that name',
        'from apex.parallel import DistributedDataParallel as DDP\nm = DDP(m)\n',
        'from apex.parallel import DistributedDataParallel as DDP\nm = DDP(m, broadcast_buffers=False)\n',
        'comment-only',
      ],
    ],
  },
  {
    pattern: 'P23 gradients reduced too often',
    remedy: 'no-sync-accumulation',
    prelude: DDP,
    over: { params: { microSteps: 4, exposedMs: 60 } },
    rows: [
      [
        'always for a person',
        'm = DDP(m)\nfor i, b in enumerate(loader):\n    m(b).backward()\n    if (i + 1) % 4 == 0:\n        opt.step()\n',
        null,
      ],
    ],
  },
  {
    pattern: 'P20 optimizers',
    remedy: 'use-fused-optimizer',
    prelude: 'import torch\n',
    over: { params: { what: 'update', optimizer: 'AdamW', kind: 'loop', tensors: 160 } },
    rows: [
      ['the class stays', 'opt = torch.optim.AdamW(model.parameters(), lr=1e-3)\n', null],
      ['foreach=False is for a person', 'opt = torch.optim.AdamW(model.parameters(), foreach=False)\n', null],
    ],
  },
  {
    pattern: 'P28 wide types',
    remedy: 'avoid-aicpu',
    prelude: 'import torch\n',
    over: { params: { ops: 'Mul', dtypes: 'DOUBLE', cann: '8.0.0' } },
    rows: [
      ['double', 'x = x.double()\n', null],
      ['a type', 'x = torch.zeros(3, dtype=torch.int16)\n', null],
    ],
  },
  {
    pattern: 'P29 results without a fixed size',
    remedy: 'avoid-aicpu',
    prelude: 'import torch\n',
    over: { params: { ops: 'NonZero', dtypes: 'BOOL', cann: null } },
    rows: [
      ['nonzero', 'for b in loader:\n    i = torch.nonzero(b)\n', null],
      ['masked reads', 'for b in loader:\n    y = b[b > 0]\n', null],
      ['unique', 'for b in loader:\n    y = torch.unique(b)\n', null],
    ],
  },
  {
    pattern: 'P10 private formats',
    remedy: 'keep-layout',
    prelude: 'import torch\nimport torch_npu\n',
    over: { params: { types: 'TransData', removableMs: 2 } },
    rows: [
      [
        'asked for',
        'torch_npu.npu.config.allow_internal_format = True\n',
        'torch_npu.npu.config.allow_internal_format = False\n',
        'comment-only',
      ],
      ['a number that is not ND', 'w = torch_npu.npu_format_cast(w, 29)  # ND\n', null],
      ['off already', 'torch_npu.npu.config.allow_internal_format = False\n', null],
    ],
  },
  {
    pattern: 'P27 leftovers of debugging',
    remedy: 'set-environment',
    prelude: 'import os\n',
    over: { params: { kind: 'symptom', name: 'ASCEND_LAUNCH_BLOCKING' } },
    rows: [
      ['in Python', 'os.environ["ASCEND_LAUNCH_BLOCKING"] = "1"\n', 'os.environ["ASCEND_LAUNCH_BLOCKING"] = "0"\n', 'suggestion'],
      ['a line that speaks of debugging', 'os.environ["ASCEND_LAUNCH_BLOCKING"] = "1"  # debug\n', null],
      ['a file for debugging', 'os.environ["ASCEND_LAUNCH_BLOCKING"] = "1"\n', null, undefined, { file: 'debug_run.py' }],
      ['set twice', 'os.environ["ASCEND_LAUNCH_BLOCKING"] = "1"\nos.environ["ASCEND_LAUNCH_BLOCKING"] = "1"\n', null],
      [
        'a guess',
        'os.environ["ASCEND_LAUNCH_BLOCKING"] = "1"\n',
        'os.environ["ASCEND_LAUNCH_BLOCKING"] = "0"\n',
        'comment-only',
        { confidence: 'low' },
      ],
    ],
  },
  {
    pattern: 'P27 in a launch script',
    remedy: 'set-environment',
    prelude: '#!/bin/bash\n',
    over: { file: 'run.sh', params: { kind: 'symptom', name: 'HCCL_ALGO' } },
    rows: [
      ['the line goes', 'set -e\nexport HCCL_ALGO=level0:NA\ntorchrun train.py\n', 'set -e\ntorchrun train.py\n', 'suggestion'],
      ['before the program', 'HCCL_ALGO=ring torchrun train.py\n', null],
      ['a comment above', '# measured on this cluster\nexport HCCL_ALGO=ring\n', null],
    ],
  },
  {
    pattern: 'P27 a task queue that is off',
    remedy: 'set-environment',
    prelude: '#!/bin/bash\n',
    over: { file: 'run.sh', params: { kind: 'symptom', name: 'TASK_QUEUE_ENABLE' } },
    rows: [
      ['two stages and more', QUEUE(0), QUEUE(2), 'suggestion'],
      [
        'prebuilt operators',
        QUEUE(0),
        QUEUE(2),
        'suggestion',
        { files: { 'train.py': 'torch_npu.npu.set_compile_mode(jit_compile=False)\n' } },
      ],
      ...[
        'torch_npu.npu.set_compile_mode(jit_compile=True)',
        'torch_npu.npu.set_compile_mode(jit_compile=args.jit)',
        'model = torch.compile(model, backend="npugraphs")',
        'graph = torch.npu.NPUGraph()',
        'import torchair',
      ].map((line): Row => [line, QUEUE(0), QUEUE(1), 'comment-only', { files: { 'train.py': `${line}\n` } }]),
    ],
  },
  ...['launch-settings', 'fuse-small-ops'].map(
    (remedy): PairSet => ({
      pattern: `the task queue, ${remedy}`,
      remedy,
      prelude: '#!/bin/bash\n',
      over: { file: 'run.sh', params: { taskQueue: '0', affinity: '2', where: 'forward', kernels: 900 } },
      rows: [
        [
          'raises the peak, so it is for a person',
          'export TASK_QUEUE_ENABLE=0\ntorchrun train.py\n',
          'export TASK_QUEUE_ENABLE=2\ntorchrun train.py\n',
          'comment-only',
        ],
        ['level 2 is set', 'export TASK_QUEUE_ENABLE=2\n', null],
      ],
    }),
  ),
];
