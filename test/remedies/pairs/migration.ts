import type { PairSet } from './pair.ts';

const NPU =
  'import torch\nimport torch_npu\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n';
const SET = 'torch_npu.npu.set_device';
const RANKS = 'rank = dist.get_rank()\nlocal_rank = int(os.environ["LOCAL_RANK"])\n';
const set = (pattern: string, rows: PairSet['rows']): PairSet => ({ pattern, remedy: 'fix-for-npu', prelude: NPU, over: {}, rows });

/** Corrections, not speed: what the review of a migration finds needs no profile. */
export const MIGRATION_PAIRS: readonly PairSet[] = [
  set('P3 cards by the rank of the job', [
    ['a local rank is there', `${RANKS}m = DDP(m, device_ids=[rank])\n`, `${RANKS}m = DDP(m, device_ids=[local_rank])\n`, 'suggestion'],
    ['no local rank in scope', 'rank = dist.get_rank()\nm = DDP(m, device_ids=[rank])\n', null],
    ['the local rank', `${RANKS}m = DDP(m, device_ids=[local_rank])\n`, null],
    ['a name nobody explains', 'm = DDP(m, device_ids=[rank])\n', null],
    ['a local rank that comes later', `args.rank = dist.get_rank()\n${SET}(args.rank)\nargs.local_rank = args.rank % 8\n`, null],
    [
      'a local rank of the options',
      `args.rank = dist.get_rank()\nargs.local_rank = args.rank % 8\n${SET}(args.rank)\n`,
      `args.rank = dist.get_rank()\nargs.local_rank = args.rank % 8\n${SET}(args.local_rank)\n`,
      'suggestion',
    ],
    [
      'a local rank that only some runs have',
      `args.rank = dist.get_rank()\nif x:\n    args.local_rank = args.rank % 8\n${SET}(args.rank)\n`,
      null,
    ],
    ['a name that only some runs have', `rank = dist.get_rank()\nif x:\n    local_rank = rank % 8\n${SET}(rank)\n`, null],
    ['a name of another function', `rank = dist.get_rank()\ndef f():\n    local_rank = rank % 8\ndef g():\n    ${SET}(rank)\n`, null],
    ['a default that is no card', `rank = dist.get_rank()\nlocal_rank = int(os.environ.get("LOCAL_RANK", -1))\n${SET}(rank)\n`, null],
    ['a card by its number', 'm = DDP(m, device_ids=[args.gpu])\n', null],
  ]),
  set('P11 modules that never were', [
    [
      'the true module',
      'from torch_npu.amp import autocast, GradScaler\n',
      'from torch_npu.npu.amp import autocast, GradScaler\n',
      'suggestion',
    ],
    ['a product', 'y = torch_npu.npu_matmul(a, b)\n', 'y = torch.matmul(a, b)\n', 'suggestion'],
    ['nothing does the same', 'from torch_npu.utils.data import NpuImageDecoder\n', null],
    ['no such mode', 'torch_npu.npu.set_mode("static")\n', null],
    ['the module that is there', 'from torch_npu.npu.amp import autocast\n', null],
  ]),
  set('P12 one process for all cards', [['for a person', 'm = torch.nn.DataParallel(m)\n', null]]),
  set('P21 gradients the optimizer keeps', [
    [
      'its own optimizer',
      'opt = torch_npu.optim.NpuFusedAdamW(p)\nopt.zero_grad(set_to_none=True)\n',
      'opt = torch_npu.optim.NpuFusedAdamW(p)\nopt.zero_grad()\n',
      'suggestion',
    ],
    ['an optimizer of torch', 'opt = torch.optim.AdamW(p)\nopt.zero_grad(set_to_none=True)\n', null],
    ['without the keyword', 'opt = torch_npu.optim.NpuFusedAdamW(p)\nopt.zero_grad()\n', null],
  ]),
  set('P22 a fused kernel and a scaler', [
    [
      'for a person',
      'opt = torch.optim.AdamW(p, fused=True)\nscaler = torch_npu.npu.amp.GradScaler()\nscaler.step(opt)\n',
      'opt = torch.optim.AdamW(p, fused=False)\nscaler = torch_npu.npu.amp.GradScaler()\nscaler.step(opt)\n',
      'comment-only',
    ],
    ['no scaler', 'opt = torch.optim.AdamW(p, fused=True)\n', null],
  ]),
  set('P25 a profiler that records nothing', [
    ['for a person', 'with torch_npu.profiler.profile(schedule=torch_npu.profiler.schedule(wait=1, active=2)) as p:\n    train()\n', null],
    [
      'its step is called',
      'with torch_npu.profiler.profile(schedule=torch_npu.profiler.schedule(wait=1, active=2)) as p:\n    p.step()\n',
      null,
    ],
  ]),
  set('P26 the profiler of torch', [['for a person', 'with torch.profiler.profile() as p:\n    train()\n', null]]),
  set('P30 scripts that are switched off', [
    ['for a person', 'from torch_npu.contrib import transfer_to_npu\nm = torch.jit.script(m)\n', null],
  ]),
];
