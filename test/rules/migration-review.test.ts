import { describe, expect, test } from 'vitest';
import { diagnose } from '../../src/cli/analyze.ts';
import { analyse } from '../../src/engine/analyse.ts';
import { codeFacts } from '../../src/facts/code/index.ts';
import { jobFacts } from '../../src/facts/job/index.ts';
import { Report } from '../../src/model/report.ts';
import type { RawFinding } from '../../src/model/rule.ts';
import type { SourceTree } from '../../src/model/source-tree.ts';
import { REMEDIES } from '../../src/remedies/index.ts';
import { renderMarkdown } from '../../src/render/markdown.ts';
import { renderText } from '../../src/render/text.ts';
import { RULES } from '../../src/rules/index.ts';
import { applyLineEdit } from '../../src/source/line-edit.ts';
import { sourceTreeFrom } from '../../src/source/source-tree-from.ts';
import { contextOf, findingOf } from '../remedies/situations.ts';
import { DEFAULT_OPTIONS } from '../support/grid.ts';

const RULE = RULES.find(({ id }) => id === 'migration-review')!;
const NO_JOB = jobFacts([], [], {});

function detected(tree: SourceTree): readonly RawFinding[] {
  const detection = RULE.detect(NO_JOB, {}, codeFacts(tree));
  return detection.outcome === 'findings' ? detection.findings : [];
}

type Files = Readonly<Record<string, string>>;
const whole = (files: Files): SourceTree => sourceTreeFrom({ files: Object.entries(files) });

/** `kind name file:line`, or the names of a wrong setting. */
function told(tree: SourceTree): string[] {
  return detected(tree)
    .flatMap(({ remedies, sites }) => {
      const { kind, name } = remedies[0]!.params;
      return sites!.map(({ file, startLine }) => `${kind} ${name} ${file}:${startLine}`);
    })
    .sort();
}

const NPU = 'import torch\nimport torch_npu\n';
const DIST = `${NPU}import torch.distributed as dist\n`;
const LOOP = 'for x in loader:\n    loss = model(x)\n    loss.backward()\n    optimizer.step()\n';
const PROFILE = `${NPU}from torch_npu.profiler import profile, schedule\n`;
const TRANSFER = 'import torch\nimport torch_npu\nfrom torch_npu.contrib import transfer_to_npu\n';

describe('loud', () => {
  test.each<[what: string, files: Files | string, told: string[]]>([
    [
      'a module that is not there, imported from',
      'from torch_npu.amp import autocast, GradScaler',
      ['unknown-name torch_npu.amp a.py:1', 'unknown-name torch_npu.amp a.py:1'],
    ],
    ['… imported', 'import torch_npu.amp as amp', ['unknown-name torch_npu.amp a.py:1']],
    ['… as a member', 'from torch_npu import amp', ['unknown-name torch_npu.amp a.py:1']],
    ['… used', `${NPU}with torch_npu.amp.autocast():\n    pass`, ['unknown-name torch_npu.amp a.py:3']],
    ['… under an alias', 'import torch_npu as tn\ntn.amp.autocast()', ['unknown-name torch_npu.amp a.py:2']],
    ['… inside a function that runs later', 'def f():\n    from torch_npu.amp import autocast\n', ['unknown-name torch_npu.amp a.py:2']],
    ['the image decoder', 'from torch_npu.utils.data import NpuImageDecoder', ['unknown-name torch_npu.utils.data a.py:1']],
    [
      'gradient compression',
      'from torch_npu.contrib import gradient_compress\nopt = gradient_compress(opt, comp_rate=0.5)',
      ['unknown-name torch_npu.contrib.gradient_compress a.py:1'],
    ],
    ['a pipeline', 'from torch_npu.contrib import pipeline\npipeline.PipelineModel(m)', ['unknown-name torch_npu.contrib.pipeline a.py:1']],
    ['set_mode', `${NPU}torch_npu.npu.set_mode("static")`, ['unknown-name torch_npu.npu.set_mode a.py:3']],
    ['set_mode under the alias of torch', `${NPU}torch.npu.set_mode("static")`, ['unknown-name torch_npu.npu.set_mode a.py:3']],
    ['npu_matmul', `${NPU}y = torch_npu.npu_matmul(a, b)`, ['unknown-name torch_npu.npu_matmul a.py:3']],
    [
      'an activity of the wrong module',
      `${NPU}x = [torch.profiler.ProfilerActivity.NPU]`,
      ['unknown-name torch.profiler.ProfilerActivity.NPU a.py:3'],
    ],
    [
      '… imported',
      'import torch_npu\nfrom torch.profiler import ProfilerActivity\nx = ProfilerActivity.NPU',
      ['unknown-name torch.profiler.ProfilerActivity.NPU a.py:3'],
    ],
    [
      'a misspelt class',
      'from torch_npu.contrib import ModulationDeformConv',
      ['unknown-name torch_npu.contrib.ModulationDeformConv a.py:1'],
    ],
    [
      'a keyword of a fused optimizer',
      `${NPU}o = torch_npu.optim.NpuFusedAdamW(p, lr=1, momentum=0.9)`,
      ['unknown-keyword torch_npu.optim.NpuFusedAdamW(momentum) a.py:3'],
    ],
    [
      '… foreach',
      'from torch_npu.optim import NpuFusedAdam as A\no = A(p, foreach=True)',
      ['unknown-keyword torch_npu.optim.NpuFusedAdam(foreach) a.py:2'],
    ],
    [
      'prefetch of a loader',
      `${NPU}from torch.utils.data import DataLoader\nl = DataLoader(d)\nl.prefetch(4)`,
      ['no-such-method DataLoader.prefetch a.py:5'],
    ],
    [
      'a deprecated operator',
      `${NPU}y = torch_npu.npu_confusion_transpose(x, (0, 2, 1, 3), s, True)`,
      ['deprecated-name torch_npu.npu_confusion_transpose a.py:3'],
    ],
    [
      'the optimizers of apex',
      'import torch_npu\nfrom apex.optimizers import NpuFusedSGD',
      ['deprecated-name apex.optimizers.NpuFusedSGD a.py:2'],
    ],
    ['nccl', `${DIST}dist.init_process_group("nccl")`, ['nccl-backend nccl a.py:4']],
    [
      'nccl by keyword',
      `${DIST}dist.init_process_group(init_method="env://", backend='nccl')\ntorch.npu.set_device(local_rank)`,
      ['nccl-backend nccl a.py:4'],
    ],
    [
      'nccl beside a choice between NPU and CPU',
      `${DIST}d = "npu" if torch.npu.is_available() else "cpu"\ndist.init_process_group("nccl")`,
      ['nccl-backend nccl a.py:5'],
    ],
    ['nccl through DeepSpeed', `${NPU}import deepspeed\ndeepspeed.init_distributed(dist_backend="nccl")`, ['nccl-backend nccl a.py:4']],
    ['DataParallel', `${NPU}model = torch.nn.DataParallel(model.npu())`, ['data-parallel torch.nn.DataParallel a.py:3']],
    [
      'DataParallel after translation',
      `${TRANSFER}from torch import nn\nif torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model.cuda())`,
      ['data-parallel torch.nn.DataParallel a.py:6'],
    ],
    [
      'the global rank in DDP',
      `${DIST}from torch.nn.parallel import DistributedDataParallel as DDP\nrank = dist.get_rank()\nm = DDP(m, device_ids=[rank])`,
      ['global-rank rank a.py:6'],
    ],
    ['… from the environment', `${NPU}import os\nr = int(os.environ["RANK"])\ntorch.npu.set_device(r)`, ['global-rank r a.py:5']],
    [
      '… with a default',
      `${NPU}import os\nrank = int(os.environ.get("RANK", 0))\ndevice = torch.device(f"npu:{rank}")`,
      ['global-rank rank a.py:5'],
    ],
    ['… in an attribute', `${DIST}args.rank = dist.get_rank()\ntorch_npu.npu.set_device(args.rank)`, ['global-rank args.rank a.py:5']],
    ['… at once', `${DIST}torch.npu.set_device(dist.get_rank())`, ['global-rank dist.get_rank() a.py:4']],
    [
      'the rank that joins the job',
      `${DIST}dist.init_process_group("hccl", rank=args.rank, world_size=args.world)\nm = torch.nn.parallel.DistributedDataParallel(m, device_ids=[args.rank])`,
      ['global-rank args.rank a.py:5'],
    ],
    [
      'nccl where the card is only named',
      'import torch\nimport torch.distributed as dist\nx = torch.zeros(1).to("npu:0")\ndist.init_process_group("nccl")',
      ['nccl-backend nccl a.py:4'],
    ],
    ['… moved to', `${DIST}rank = dist.get_rank()\nmodel.to(f"npu:{rank}")`, ['global-rank rank a.py:5']],
    [
      'a profiler without step',
      `${PROFILE}with profile(schedule=schedule(wait=1, warmup=1, active=3)) as prof:\n    train()`,
      ['profiler-without-step profile a.py:4'],
    ],
    [
      '… without a name',
      `${PROFILE}with profile(schedule=schedule(wait=1, active=3)):\n    train()`,
      ['profiler-without-step profile a.py:4'],
    ],
    [
      '… started and stopped',
      `${PROFILE}s = schedule(1, 3)\nprof = profile(schedule=s)\nprof.start()\ntrain()\nprof.stop()`,
      ['profiler-without-step profile a.py:5'],
    ],
    [
      '… made before it is entered',
      `${PROFILE}prof = profile(schedule=schedule(wait=1, active=3))\nwith prof:\n    train()`,
      ['profiler-without-step profile a.py:4'],
    ],
    [
      '… skip_first',
      `${PROFILE}with profile(schedule=schedule(wait=0, active=3, skip_first=10)) as p:\n    train()`,
      ['profiler-without-step profile a.py:4'],
    ],
    ['the profiler of torch', `${NPU}with torch.profiler.profile() as p:\n    train()`, ['foreign-profiler torch.profiler.profile a.py:3']],
    [
      'float16 without a scaler',
      `${NPU}for x in l:\n    with torch.npu.amp.autocast():\n        loss = m(x)\n    loss.backward()\n    optimizer.step()`,
      ['fp16-without-scaler torch.npu.amp.autocast a.py:4'],
    ],
    [
      '… said',
      `${NPU}def train():\n    with torch.autocast("npu", dtype=torch.float16):\n        loss = m(x)\n    loss.backward()\n    optimizer.step()`,
      ['fp16-without-scaler torch.autocast a.py:4'],
    ],
    [
      'AdamW fused with a scaler',
      `${NPU}opt = torch.optim.AdamW(p, lr=1, fused=True)\nscaler = torch.npu.amp.GradScaler()\nscaler.step(opt)`,
      ['fused-optimizer-with-scaler torch.optim.AdamW(fused) a.py:3'],
    ],
    [
      'gradients set to None',
      `${NPU}opt = torch_npu.optim.NpuFusedAdamW(p)\nopt.zero_grad(set_to_none=True)`,
      ['gradients-set-to-none torch_npu.optim.NpuFusedAdamW a.py:4'],
    ],
    ['a wrong comment beside a format', `${NPU}y = torch_npu.npu_format_cast(x, 29)  # ND`, ['private-format ND a.py:3']],
    ['… as a method', `${NPU}y = x.npu_format_cast(29)  # ND format`, ['private-format ND a.py:3']],
    ['a private format in training', `${NPU}${LOOP}y = x.npu_format_cast(3)`, ['private-format NC1HWC0 a.py:7']],
    ['private formats on', `${NPU}torch.npu.config.allow_internal_format = True\n${LOOP}`, ['private-format allow_internal_format a.py:3']],
    [
      'TorchScript after translation',
      `${TRANSFER}@torch.jit.script\ndef f(x): return x\ng = torch.jit.script(f)`,
      ['script-disabled torch.jit.script a.py:4', 'script-disabled torch.jit.script a.py:6'],
    ],
    [
      'a tuple taken for a tensor',
      `${NPU}y = torch_npu.npu_rms_norm(x, w, 1e-6).to(x.dtype)`,
      ['tuple-result torch_npu.npu_rms_norm a.py:3'],
    ],
    [
      'nothing kept',
      `${NPU}y = torch_npu.npu_fusion_attention(q, k, v, 8, "BSH", keep_prob=0.0)[0]`,
      ['inverted-argument keep_prob a.py:3'],
    ],
    [
      'examples are looked at',
      { 'examples/train.py': 'from torch_npu.amp import autocast' },
      ['unknown-name torch_npu.amp examples/train.py:1'],
    ],
    [
      'a file for both cards: names that are nowhere',
      'import torch\nif torch.cuda.is_available():\n    x.cuda()\nelse:\n    x.npu()\nfrom torch_npu.amp import autocast',
      ['unknown-name torch_npu.amp a.py:6'],
    ],
    [
      'a name that is nowhere, tried before that of another card',
      'try:\n    from torch_npu.amp import autocast\nexcept ImportError:\n    from torch.cuda.amp import autocast',
      ['unknown-name torch_npu.amp a.py:2'],
    ],
    [
      'a version that never was',
      { 'requirements.txt': 'torch==1.12.0\ntorch_npu==1.12.0\n' },
      ['unknown-package torch_npu==1.12.0 requirements.txt:2'],
    ],
    [
      '… as no pip syntax',
      { 'install.sh': 'pip install torch_npu-1.12.0 -f https://x' },
      ['unknown-package torch_npu-1.12.0 install.sh:1'],
    ],
    [
      '… in an image',
      { Dockerfile: 'FROM x\nRUN pip install \\\n    numpy \\\n    torch-npu==2.0.9 torch==2.0.9\nRUN pip install torch_npu==1.13.1' },
      ['unknown-package torch_npu==1.13.1 Dockerfile:5'],
    ],
    [
      'torch and torch_npu that do not fit',
      { 'requirements.txt': 'torch==2.6.0\ntorch_npu==2.5.1.post1  # x\n' },
      ['torch-pair torch_npu==2.5.1.post1 requirements.txt:1'],
    ],
    [
      '… in a project file',
      { 'pyproject.toml': '[project]\ndependencies = [\n  "torch==2.7.1",\n  "torch-npu==2.6.0",\n]\n' },
      ['torch-pair torch-npu==2.6.0 pyproject.toml:3'],
    ],
    [
      '… in one command of a script',
      { 'install.sh': 'pip install torch==2.6.0 torch_npu==2.5.1' },
      ['torch-pair torch_npu==2.5.1 install.sh:1'],
    ],
    [
      '… in one stage of an image',
      { Dockerfile: 'FROM a\nRUN pip install torch==2.1.0\nFROM b\nRUN pip install torch==2.6.0\nRUN pip install torch_npu==2.5.1\n' },
      ['torch-pair torch_npu==2.5.1 Dockerfile:4'],
    ],
    [
      '… for conda',
      { 'environment.yml': 'dependencies:\n  - pytorch=2.1.0\n  - pip:\n    - torch_npu==2.2.0\n' },
      ['torch-pair torch_npu==2.2.0 environment.yml:2'],
    ],
    [
      'CANN and torch_npu that do not fit',
      { Dockerfile: 'FROM quay.io/ascend/cann:8.1.rc1-910b-ubuntu22.04-py3.10\nRUN pip3 install torch==2.7.1 torch_npu==2.7.1.post2' },
      ['cann-pair torch_npu==2.7.1.post2 Dockerfile:1'],
    ],
    ['a misspelt variable', { 'run.sh': 'export HCCL_RDAM_TC=132' }, ['unknown-variable HCCL_RDAM_TC run.sh:1']],
    [
      'both links of a server',
      { 'run.sh': 'export HCCL_INTRA_PCIE_ENABLE=1\nexport HCCL_INTRA_ROCE_ENABLE=1' },
      ['wrong HCCL_INTRA_PCIE_ENABLE run.sh:1', 'wrong HCCL_INTRA_PCIE_ENABLE run.sh:2'],
    ],
    ['a value that is refused', { 'ci.yml': 'env:\n  TASK_QUEUE_ENABLE: "3"\n' }, ['wrong TASK_QUEUE_ENABLE ci.yml:2']],
    [
      'a removed name beside a pinned version',
      { 'a.py': `${NPU}torch_npu.npu_flash_attention(q)`, 'requirements.txt': 'torch_npu==2.7.1\n' },
      ['removed-name torch_npu.npu_flash_attention a.py:3'],
    ],
  ])('%s', (_, files, expected) => expect(told(whole(typeof files === 'string' ? { 'a.py': files } : files))).toEqual(expected));
});

describe('quiet', () => {
  test.each<[what: string, files: Files | string]>([
    ['the true module', 'from torch_npu.npu.amp import autocast, GradScaler\nimport torch_npu\ntorch.npu.amp.autocast'],
    [
      'names in strings and comments',
      '"""from torch_npu.amp import autocast"""\nimport torch_npu\n# torch_npu.npu_matmul(a, b)\nprint("torch_npu.npu.set_mode", f"torch_npu.amp")',
    ],
    [
      'a try with a way out',
      'try:\n    from torch_npu.amp import autocast\nexcept ImportError:\n    from torch_npu.npu.amp import autocast',
    ],
    ['the way out itself', 'try:\n    from torch_npu.npu.amp import autocast\nexcept Exception:\n    from torch_npu.amp import autocast'],
    ['a look first', 'import torch_npu\nif hasattr(torch_npu, "npu_matmul"):\n    torch_npu.npu_matmul(a, b)'],
    ['a version check', 'import torch_npu\nif torch_npu.__version__ >= "9":\n    torch_npu.npu_matmul(a, b)'],
    ['an own module of that name', { 'torch_npu/__init__.py': '', 'a.py': 'from torch_npu.amp import autocast' }],
    ['a local name', 'import torch_npu\ndef f(torch_npu):\n    torch_npu.npu_matmul(1)'],
    ['a name that may be something else', 'import torch_npu\nif x:\n    torch_npu = y\ntorch_npu.npu_matmul(1)'],
    ['a longer name', `${NPU}torch_npu.npu_matmul_all_to_all(a)\ntorch_npu.amp_tool(x)`],
    ['prefetch of something else', `${NPU}ds = tf.data.Dataset()\nds.prefetch(4)\nloader = make()\nloader.prefetch(2)`],
    [
      'a subclass with its own prefetch',
      `${NPU}from torch.utils.data import DataLoader\nclass L(DataLoader):\n    def prefetch(self): pass\nl = L(d)\nl.prefetch()`,
    ],
    ['hccl', `${DIST}dist.init_process_group("hccl")`],
    ['a backend by name', `${DIST}dist.init_process_group(backend=args.backend)`],
    ['a switch', `${DIST}if is_npu_available():\n    dist.init_process_group("hccl")\nelse:\n    dist.init_process_group("nccl")`],
    [
      'a switch with an early return',
      `import torch\nimport torch.distributed as dist\nimport torch_npu\ndef init():\n    if torch.npu.is_available():\n        return start()\n    dist.init_process_group("nccl")`,
    ],
    ['a function for the other card', `${DIST}def init_gpu():\n    dist.init_process_group("nccl")`],
    ['a file that speaks of CUDA, too', `${DIST}torch.cuda.set_device(0)\ndist.init_process_group("nccl")`],
    [
      'nccl of a CUDA file',
      'import torch\nimport torch.distributed as dist\ndist.init_process_group("nccl")\nmodel = torch.nn.DataParallel(model)',
    ],
    [
      'torch_npu only where it is there',
      'import torch.distributed as dist\ntry:\n    import torch_npu\nexcept ImportError:\n    pass\ndist.init_process_group("nccl")',
    ],
    ['nccl that is translated', `${TRANSFER}import torch.distributed as dist\ndist.init_process_group("nccl")`],
    [
      'nccl that is translated by another file',
      { 'main.py': `${TRANSFER}import setup_dist`, 'setup_dist.py': `${DIST}dist.init_process_group("nccl")` },
    ],
    ['DataParallel over one card', `${NPU}model = torch.nn.DataParallel(model, device_ids=[0]).npu()`],
    [
      'a job that stays on one node',
      `${DIST}dist.init_process_group('hccl', world_size=ngpus_per_node, rank=i)\nrank = dist.get_rank()\ntorch.npu.set_device(rank)`,
    ],
    ['an instance check', `${NPU}if isinstance(m, torch.nn.DataParallel): m = m.module`],
    ['the local rank', `${DIST}import os\nlocal_rank = int(os.environ["LOCAL_RANK"])\ntorch.npu.set_device(local_rank)`],
    ['a rank by another name that is local', `${NPU}import os\nrank = int(os.environ["LOCAL_RANK"])\ntorch.npu.set_device(rank)`],
    ['a rank modulo the cards', `${DIST}rank = dist.get_rank() % torch.npu.device_count()\ntorch.npu.set_device(rank)`],
    [
      'a rank that is handed in',
      `${NPU}def main(rank, world):\n    torch.npu.set_device(rank)\n    m = torch.nn.parallel.DistributedDataParallel(m, device_ids=[rank])`,
    ],
    ['a rank that may be either', `${DIST}rank = dist.get_rank()\nif x:\n    rank = args.local_rank\ntorch.npu.set_device(rank)`],
    [
      'processes that one script spawns',
      `${DIST}import torch.multiprocessing as mp\ndef main(rank, n):\n    dist.init_process_group('hccl', rank=rank, world_size=n)\n    torch.npu.set_device(rank)\nmp.spawn(main, nprocs=8)`,
    ],
    [
      'a local rank that joins the job',
      `${DIST}rank = args.local_rank\ndist.init_process_group("hccl", rank=rank)\ntorch.npu.set_device(rank)`,
    ],
    [
      'an option that is set to something else',
      `${DIST}args.rank = int(args.local_rank)\ndist.init_process_group("hccl", rank=args.rank)\ntorch.npu.set_device(args.rank)`,
    ],
    [
      'a job on this machine',
      `${DIST}dist.init_process_group("hccl", init_method="tcp://127.0.0.1:29500", rank=args.rank)\ntorch.npu.set_device(args.rank)`,
    ],
    ['a rank of one group', `${DIST}rank = dist.get_rank(group)\ntorch.npu.set_device(rank)`],
    ['a rank that is printed', `${DIST}rank = dist.get_rank()\nprint(f"npu:{rank}")`],
    ['the global rank on CUDA', 'import torch\nimport torch.distributed as dist\nrank = dist.get_rank()\ntorch.cuda.set_device(rank)'],
    ['a profiler with step', `${PROFILE}with profile(schedule=schedule(wait=1, active=3)) as prof:\n    for x in l:\n        prof.step()`],
    ['a profiler that is handed on', `${PROFILE}with profile(schedule=schedule(wait=1, active=3)) as prof:\n    train(model, prof)`],
    ['a profiler that is returned', `${PROFILE}def make():\n    return profile(schedule=schedule(wait=1, active=3))`],
    ['a profiler that another file runs', `${PROFILE}prof = profile(schedule=schedule(wait=1, active=3))`],
    [
      'a profiler in an attribute',
      `${PROFILE}class T:\n    def f(self):\n        self.prof = profile(schedule=schedule(wait=1, active=3))`,
    ],
    [
      'a profiler that records from the first step on',
      `${PROFILE}with profile(schedule=schedule(wait=0, warmup=0, active=1)) as prof:\n    train()`,
    ],
    ['a profiler without a schedule', `${PROFILE}with profile() as prof:\n    train()`],
    ['a schedule from elsewhere', `${PROFILE}with profile(schedule=make_schedule()) as prof:\n    train()`],
    [
      'the profiler of torch for the host',
      `${NPU}with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:\n    train()`,
    ],
    [
      'bfloat16',
      `${NPU}for x in l:\n    with torch.autocast("npu", dtype=torch.bfloat16):\n        loss = m(x)\n    loss.backward()\n    optimizer.step()`,
    ],
    [
      'float16 with a scaler',
      `${NPU}scaler = torch.npu.amp.GradScaler()\nfor x in l:\n    with torch.npu.amp.autocast():\n        loss = m(x)\n    scaler.scale(loss).backward()\n    scaler.step(optimizer)`,
    ],
    [
      'float16 for evaluation',
      `${NPU}def evaluate():\n    with torch.npu.amp.autocast():\n        m(x)\ndef train():\n    loss.backward()\n    optimizer.step()`,
    ],
    [
      'float16 under DeepSpeed',
      `${NPU}import deepspeed\nwith torch.npu.amp.autocast():\n    loss = m(x)\nloss.backward()\noptimizer.step()`,
    ],
    ['a dtype by name', `${NPU}with torch.npu.amp.autocast(dtype=args.dtype):\n    loss = m(x)\nloss.backward()\noptimizer.step()`],
    ['AdamW fused without a scaler', `${NPU}opt = torch.optim.AdamW(p, fused=True)\nopt.step()`],
    [
      'AdamW fused beside another scaler',
      `${NPU}opt = torch.optim.AdamW(p, fused=True)\nother = torch.optim.AdamW(q)\nscaler = torch.npu.amp.GradScaler()\nscaler.step(other)`,
    ],
    [
      'AdamW fused with the scaler off',
      `${NPU}opt = torch.optim.AdamW(p, fused=True)\nscaler = torch.npu.amp.GradScaler(enabled=False)\nscaler.step(opt)`,
    ],
    ['gradients of torch set to None', `${NPU}opt = torch.optim.AdamW(p)\nopt.zero_grad(set_to_none=True)`],
    ['a format for inference', `${NPU}w = torch_npu.npu_format_cast(w, 29)  # NZ`],
    ['a format by name', `${NPU}${LOOP}w = torch_npu.npu_format_cast(w, ACL_FORMAT_ND)`],
    ['ND', `${NPU}${LOOP}w = torch_npu.npu_format_cast(w, 2)  # ND`],
    ['TorchScript', `${NPU}@torch.jit.script\ndef f(x): return x`],
    ['the first member of a tuple', `${NPU}y = torch_npu.npu_rms_norm(x, w)[0].to(x.dtype)`],
    [
      'tests, documents, vendored copies',
      {
        'tests/test_a.py': 'from torch_npu.amp import autocast',
        'docs/a.py': 'import torch_npu.amp',
        'third_party/x/a.py': 'import torch_npu.amp',
      },
    ],
    ['notebooks', { 'a.ipynb': '{"cells": [{"source": ["from torch_npu.amp import autocast"]}]}' }],
    ['a syntax error', 'import torch_npu\ndef f(:\n  from torch_npu.amp import autocast'],
    ['Python 2', 'import torch_npu\nprint torch_npu.amp'],
    ['versions that fit', { 'requirements.txt': 'torch==2.7.1\ntorch_npu==2.7.1.post2\ntorchvision==0.22.1\n' }],
    ['a short version', { 'requirements.txt': 'torch==2.1\ntorch-npu==2.1.0.post8\n' }],
    [
      'a wildcard and a build',
      {
        'requirements.txt': 'torch==2.1.*\ntorch-npu==2.1.0\n',
        'setup.cfg': '[options]\ninstall_requires =\n  torch==2.1.0+cpu\n  torch-npu==2.1.0\n',
      },
    ],
    ['open versions', { 'requirements.txt': 'torch>=2.5\ntorch_npu>=2.5.1\n' }],
    ['versions under markers', { 'requirements.txt': 'torch==2.6.0; platform_machine == "x86_64"\ntorch_npu==2.5.1\n' }],
    [
      'extras that exclude each other',
      { 'pyproject.toml': '[project.optional-dependencies]\ngpu = ["torch==2.6.0"]\nnpu = ["torch-npu==2.5.1"]\n' },
    ],
    ['extras in a setup script', { 'setup.py': 'setup(install_requires=["torch==2.6.0"], extras_require={"npu": ["torch-npu==2.5.1"]})' }],
    [
      'branches of a script',
      { 'install.sh': 'if [ $X = npu ]; then\n  pip install torch_npu==2.5.1\nelse\n  pip install torch==2.6.0\nfi' },
    ],
    ['jobs of a workflow', { 'ci.yml': 'a:\n  run: pip install torch==2.6.0\nb:\n  run: pip install torch_npu==2.5.1' }],
    ['a branch in an image', { Dockerfile: 'FROM x\nRUN if [ $A ]; then pip install torch==2.6.0; fi\nRUN pip install torch_npu==2.5.1' }],
    ['two files for two cards', { 'requirements.txt': 'torch==2.6.0\n', 'requirements-npu.txt': 'torch_npu==2.5.1\n' }],
    ['stages of an image', { Dockerfile: 'FROM a\nRUN pip install torch==2.6.0\nFROM b\nRUN pip install torch_npu==2.5.1\n' }],
    ['a newer line than is known', { 'requirements.txt': 'torch_npu==2.13.0\n' }],
    ['a nightly build', { 'requirements.txt': 'torch==2.5.1\ntorch_npu==2.5.1.dev20250320\n' }],
    [
      'a wheel by its file name',
      { 'install.sh': 'pip install torch_npu-2.1.0.post3-cp39-cp39-linux_aarch64.whl\nwget https://x/torch_npu-1.12.0-x.whl' },
    ],
    [
      'a version in a comment',
      { 'requirements.txt': '# torch_npu==1.12.0\n', 'run.sh': '# pip install torch_npu==1.12\necho torch_npu==1.12' },
    ],
    [
      'CANN that fits',
      { Dockerfile: 'FROM ascendai/cann:8.5.0-910b-ubuntu22.04-py3.11\nRUN pip install torch==2.7.1 torch_npu==2.7.1.post2' },
    ],
    ['a newer CANN, which mostly works', { Dockerfile: 'FROM ascendai/cann:8.5.0-910b\nRUN pip install torch_npu==2.5.1' }],
    ['settings that are right', { 'run.sh': 'export TASK_QUEUE_ENABLE=2\nexport HCCL_INTRA_ROCE_ENABLE=1\nexport HCCL_RDMA_TC=132' }],
    ['settings that cost time are no matter of this rule', { 'run.sh': 'export ASCEND_LAUNCH_BLOCKING=1\nexport TASK_QUEUE_ENABLE=0' }],
    ['a removed name where no version is known', `${NPU}torch_npu.npu_flash_attention(q)`],
    [
      'a removed name in its own time',
      { 'a.py': `${NPU}torch_npu.npu_flash_attention(q)`, 'requirements.txt': 'torch_npu==2.1.0.post6\n' },
    ],
    ['an empty repository', {}],
  ])('%s', (_, files) => expect(told(whole(typeof files === 'string' ? { 'a.py': files } : files))).toEqual([]));

  test('hostile files end soon and break nothing', () => {
    const started = performance.now();
    const tree = whole({
      'deep.py': `import torch_npu\nx = ${'('.repeat(3_000)}1${')'.repeat(3_000)}`,
      'long.py': `import torch_npu\n${'torch_npu.npu_silu(x)\n'.repeat(1_000)}`,
      'names.py': `import torch_npu as a0\n${Array.from({ length: 1_000 }, (_, i) => `a${i + 1} = a${i}`).join('\n')}\na1000.amp.autocast()`,
      'requirements.txt': 'torch_npu==1.12\n'.repeat(5_000),
      Dockerfile: `FROM cann:${'8.'.repeat(5_000)}\n${'RUN pip install torch \\\n'.repeat(2_000)}`,
      'switch.py': `${DIST}${'dist.init_process_group("nccl")\nif x: y()\n'.repeat(200)}`,
      'prof.py': `${PROFILE}${'with profile(schedule=schedule(wait=1, active=3)) as p:\n    pass\n'.repeat(100)}`,
      'odd.py': `${DIST}dist.init_process_group('hccl', rank=f(*a)["("].rank)\ntorch.npu.set_device(f(*a)["("].rank)`,
      '__proto__.py': 'from torch_npu.amp import __proto__',
    });
    expect(detected(tree).length).toBeLessThanOrEqual(30);
    expect(performance.now() - started).toBeLessThan(40_000);
  });
});

describe('a pull request', () => {
  /** A file of which a patch replaces the lines from `line` on. */
  function changed(path: string, before: string, removed: readonly string[], added: readonly string[], after = ''): SourceTree {
    const start = before.split('\n').length;
    const patch = [
      `@@ -${start},${removed.length} +${start},${added.length} @@`,
      ...removed.map((l) => `-${l}`),
      ...added.map((l) => `+${l}`),
    ].join('\n');
    return sourceTreeFrom({ files: [[path, `${before}${added.join('\n')}\n${after}`]], patches: [[path, patch]] });
  }

  test('only changed lines are looked at', () => {
    const bad = 'y = torch_npu.npu_matmul(a, b)\n';
    expect(told(changed('a.py', `${NPU}${bad}`, [], ['x = torch_npu.npu_matmul(a, b)'], bad))).toEqual([
      'unknown-name torch_npu.npu_matmul a.py:4',
    ]);
    const tree = sourceTreeFrom({
      files: [
        ['a.py', `${NPU}${bad}`],
        ['requirements.txt', 'torch_npu==1.12.0\n'],
        ['run.sh', 'export HCCL_RDAM_TC=1\n'],
      ],
      patches: [['b.py', '@@ -0,0 +1 @@\n+x']],
    });
    expect(told(tree)).toEqual([]);
    expect(RULE.detect(NO_JOB, {}, codeFacts(tree))).toMatchObject({ outcome: 'pass' });
  });

  test('a call over several lines counts when one of them is changed; removed and context lines do not', () => {
    const call = 'torch_npu.optim.NpuFusedAdamW(\n    p,\n';
    expect(told(changed('a.py', `${NPU}o = ${call}`, ['    lr=1)'], ['    momentum=0.9)']))).toEqual([
      'unknown-keyword torch_npu.optim.NpuFusedAdamW(momentum) a.py:3',
    ]);
    const context = `@@ -1,4 +1,4 @@\n import torch\n import torch_npu\n-x = 1\n+x = 2\n y = torch_npu.npu_matmul(a, b)`;
    expect(
      told(sourceTreeFrom({ files: [['a.py', `${NPU}x = 2\ny = torch_npu.npu_matmul(a, b)\n`]], patches: [['a.py', context]] })),
    ).toEqual([]);
  });

  test('settings and versions: when the pull request touches one of them', () => {
    expect(told(changed('requirements.txt', 'torch_npu==2.5.1\n', ['torch==2.5.1'], ['torch==2.6.0']))).toEqual([
      'torch-pair torch_npu==2.5.1 requirements.txt:2',
    ]);
    expect(told(changed('run.sh', 'export HCCL_INTRA_PCIE_ENABLE=1\n', [], ['export HCCL_INTRA_ROCE_ENABLE=1']))).toHaveLength(2);
    expect(told(changed('run.sh', 'export TASK_QUEUE_ENABLE=7\n', [], ['echo']))).toEqual([]);
    expect(told(changed('run.sh', 'export TASK_QUEUE_ENABLE=0\n', [], ['export ASCEND_LAUNCH_BLOCKING=1']))).toEqual([
      'debug-setting ASCEND_LAUNCH_BLOCKING=1 run.sh:2',
    ]);
    for (const line of [
      'export ASCEND_LAUNCH_BLOCKING=0',
      'export ASCEND_LAUNCH_BLOCKING=1 # debug',
      'export ASCEND_LAUNCH_BLOCKING=\u0024{X:-1}',
    ])
      expect(told(changed('run.sh', 'set -e\n', [], [line]))).toEqual([]);
  });

  test.each<[what: string, removed: string[], added: string[], told: string[]]>([
    ['transpose → view', ['    y = x.transpose(1, 2)'], ['    y = x.view(b, s, n)'], ['unequal-rewrite transpose a.py:5']],
    [
      'transpose → contiguous + view',
      ['    y = x.transpose(1, 2).contiguous()'],
      ['    y = x.contiguous().view(b, s, n)'],
      ['unequal-rewrite transpose a.py:5'],
    ],
    [
      'permute → reshape in a longer line',
      ['    y = f(x.permute(0, 2, 1), w)'],
      ['    y = f(x.reshape(b, s, -1), w)'],
      ['unequal-rewrite permute a.py:5'],
    ],
    ['transpose → a private format', ['    y = x.transpose(1,2)'], ['    y = x.npu_format_cast(3)'], ['unequal-rewrite transpose a.py:5']],
    [
      'with a new line before',
      ['    y = x.transpose(1, 2)'],
      ['    z = 1', '    y = x.view(b, s, n)'],
      ['unequal-rewrite transpose a.py:6'],
    ],
    [
      'the mask of the fused attention',
      ['    o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)'],
      ['    o = torch_npu.npu_fusion_attention(q, k, v, n, "BNSD", atten_mask=mask)[0]'],
      ['inverted-argument atten_mask a.py:5'],
    ],
    [
      'its dropout',
      ['    o = F.scaled_dot_product_attention(q, k, v,', '        dropout_p=p)'],
      ['    o = torch_npu.npu_fusion_attention(q, k, v, n, "BNSD",', '        keep_prob=p)[0]'],
      ['inverted-argument keep_prob a.py:5'],
    ],
    ['quiet: transpose dropped', ['    y = x.transpose(1, 2)'], ['    y = x'], []],
    [
      'quiet: transpose kept beside a view',
      ['    y = x.transpose(1, 2).contiguous().view(b, n)'],
      ['    y = x.transpose(1, 2).reshape(b, n)'],
      [],
    ],
    ['quiet: something else on the line changed, too', ['    y = x.transpose(1, 2)'], ['    y = w.view(b, s, n)'], []],
    ['quiet: view → transpose', ['    y = x.view(b, s, n)'], ['    y = x.transpose(1, 2)'], []],
    ['quiet: a comment', ['    y = x.transpose(1, 2)'], ['    # y = x.view(b, s, n)'], []],
    ['quiet: a string', ['    y = "x.transpose(1, 2)"'], ['    y = "x.view(b, s, n)"'], []],
    [
      'quiet: the mask is turned',
      ['    o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)'],
      ['    o = torch_npu.npu_fusion_attention(q, k, v, n, "BNSD", atten_mask=~mask)[0]'],
      [],
    ],
    [
      'quiet: what is kept is computed',
      ['    o = F.scaled_dot_product_attention(q, k, v, dropout_p=p)'],
      ['    o = torch_npu.npu_fusion_attention(q, k, v, n, "BNSD", keep_prob=1.0 - p)[0]'],
      [],
    ],
  ])('rewrites: %s', (_, removed, added, expected) => {
    expect(
      told(changed('a.py', `${NPU}import torch.nn.functional as F\ndef f(x, w, b, s, n):\n`, removed, added, '    return y\n')),
    ).toEqual(expected);
  });

  test('rewrites in a file that does not speak to NPUs are no matter of this rule', () => {
    expect(told(changed('a.py', 'import torch\n', ['y = x.transpose(1, 2)'], ['y = x.view(b, s, n)']))).toEqual([]);
  });
});

describe('edits', () => {
  const FILE = `${DIST}from torch_npu.amp import autocast  # half\nlocal_rank = int(os.environ["LOCAL_RANK"])\nrank = dist.get_rank()\nm = torch.nn.parallel.DistributedDataParallel(\n    m,\n    device_ids=[rank],\n)\nopt = torch_npu.optim.NpuFusedSGD(p, lr=1)\nopt.zero_grad(set_to_none=True)\ny = torch_npu.npu_matmul(a, b)\ndist.init_process_group(backend='nccl')\n`;
  const patch = `@@ -0,0 +1,${FILE.split('\n').length} @@\n${FILE.split('\n')
    .map((line) => `+${line}`)
    .join('\n')}`;
  const advised = (tree: SourceTree) =>
    detected(tree).flatMap(({ remedies, sites }) => {
      const { id, params } = remedies[0]!;
      return REMEDIES.get(id)!
        .advise(findingOf(), contextOf({ params, source: tree, sites: sites! }))!
        .edits.map(({ kind, after }) => [kind, after]);
    });

  test('true names are one click inside the diff; what changes more is shown', () => {
    expect(advised(sourceTreeFrom({ files: [['a.py', FILE]], patches: [['a.py', patch]] }))).toEqual([
      ['suggestion', 'from torch_npu.npu.amp import autocast  # half'],
      ['suggestion', 'y = torch.matmul(a, b)'],
      ['comment-only', "dist.init_process_group(backend='hccl')"],
      ['suggestion', '    device_ids=[local_rank],'],
      ['suggestion', 'opt.zero_grad()'],
    ]);
  });

  test('outside a diff nothing is one click, and applied edits leave nothing to find', () => {
    const tree = whole({ 'a.py': FILE });
    expect(new Set(advised(tree).map(([kind]) => kind))).toEqual(new Set(['comment-only']));
    let text = FILE;
    for (const { sites } of detected(tree))
      for (const { edit } of sites!) text = edit === null ? text : (applyLineEdit(text, edit) ?? text);
    expect(told(whole({ 'a.py': text }))).toEqual([]);
  });

  test.each([
    ['import torch_npu.amp as amp', 'import torch_npu.npu.amp as amp'],
    ['from torch_npu import amp', 'from torch_npu.npu import amp'],
    ['from torch_npu import amp, profiler', null],
    ['from torch_npu import amp as a', 'from torch_npu.npu import amp as a'],
    ['import torch_npu as tn\nx = tn.amp.autocast()', 'x = tn.npu.amp.autocast()'],
    ['from torch_npu import npu_matmul\nx = npu_matmul(a, b)', null],
    ['import torch_npu\nx = torch_npu.npu_matmul(a, b)', null],
    ['from torch_npu.contrib import ModulationDeformConv', null],
  ])('%s → %s', (text, after) => {
    const edits = detected(whole({ 'a.py': text })).flatMap(({ sites }) => sites!.map(({ edit }) => edit?.after ?? null));
    expect(edits).toEqual([after]);
  });
});

test('files that cannot be read are counted', () => {
  expect(
    RULE.detect(NO_JOB, {}, codeFacts(whole({ 'a.py': 'import torch_npu\ntorch_npu.npu_matmul(', 'b.py': 'import torch_npu' }))),
  ).toMatchObject({
    outcome: 'pass',
    reason: { params: { npu: 2, files: 2, unread: 1 } },
  });
});

test('the versions that a repository asks for: one, exactly, wherever it does', () => {
  const versionsOf = (files: Files) => codeFacts(whole(files)).versions;
  expect(
    versionsOf({ 'requirements.txt': 'torch==2.7.1+cpu\ntorch_npu==2.7.1.post2\n', Dockerfile: 'FROM x\nRUN pip install torch==2.7.1' }),
  ).toEqual({ torch: '2.7.1', torchNpu: '2.7.1.post2' });
  expect(versionsOf({ 'requirements.txt': 'torch>=2.7\ntorch_npu==2.7.*\n' })).toEqual({ torch: null, torchNpu: null });
  expect(versionsOf({ 'requirements.txt': 'torch==2.6.0\n', 'requirements-npu.txt': 'torch==2.5.1\n' })).toEqual({
    torch: null,
    torchNpu: null,
  });
});

describe('a repository without a profile', () => {
  const tree = whole({ 'a.py': 'from torch_npu.amp import autocast', 'run.sh': 'export HCCL_RDAM_TC=1' });

  test.each(['en', 'zh'] as const)('the report is whole, and can be shown (%s)', async (lang) => {
    const report = Report.parse(await analyse({ sources: [], options: { ...DEFAULT_OPTIONS, lang }, source: tree }));
    expect(report.verdict.outcome).toBe('no-data');
    expect(report.findings.map(({ rule, severity, saving }) => [rule, severity, saving])).toEqual([
      ['migration-review', 'high', null],
      ['migration-review', 'medium', null],
    ]);
    expect(report.findings[0]!.locations).toEqual([{ file: 'a.py', line: 1, symbol: null, provenBy: 'syntax' }]);
    expect(report.checked.map(({ rule }) => rule).sort()).toEqual(RULES.map(({ id }) => id).sort());
    expect(report.checked.filter(({ outcome }) => outcome !== 'notApplicable').map(({ rule }) => rule)).toEqual(['migration-review']);
    for (const text of [renderText(report, { color: false, width: 100 }), renderMarkdown(report)]) expect(text).toContain('torch_npu.amp');
  });

  test('nothing wrong, and no repository either', async () => {
    const report = await analyse({ sources: [], options: DEFAULT_OPTIONS, source: whole({ 'a.py': 'import torch_npu' }) });
    expect(report.verdict.text).toBe('No profile, only the source was read: nothing wrong was found');
    await expect(analyse({ sources: [], options: DEFAULT_OPTIONS, source: null })).rejects.toThrow();
    await expect(diagnose([], {})).rejects.toMatchObject({ code: 'usage' });
    expect(RULE.detect(NO_JOB, {}, null)).toMatchObject({ outcome: 'notApplicable' });
  });
});
