import { MIGRATION_KINDS } from '../../src/model/code.ts';
import { FUSION_PATTERNS } from '../../src/model/facts.ts';
import { DEPRECATED } from '../../src/model/npu-names.ts';
import type { Advice, Remedy, RemedyContext, Soc } from '../../src/model/remedy.ts';
import type { SourceTree } from '../../src/model/source-tree.ts';
import { REMEDIES } from '../../src/remedies/index.ts';
import { sourceTreeFrom } from '../../src/source/source-tree-from.ts';

export const SOCS: readonly Soc[] = [null, 'gen-1', 'A2', 'A3', '950'];

/** torch and torch_npu packages of four releases, and a job that records neither. */
export const VERSIONS = [
  { torch: null, torchNpu: null },
  { torch: '2.1.0', torchNpu: '2.1.0' }, // 5.0.0
  { torch: '2.1.0', torchNpu: '2.1.0.post8+gitabcdef' }, // 6.0.rc3
  { torch: '2.7.1', torchNpu: '2.7.1.post2' }, // 7.3.0
  { torch: '2.7.1', torchNpu: '2.7.1.post8' }, // 26.1.0
] as const;

type Params = RemedyContext['params'];

/** What the rules hand over, and what they might. */
export const PARAMS: Readonly<Record<string, readonly Params[]>> = {
  'align-shapes': [{ tail: 151_936, padded: 152_064, bytes: 303_872 }, { tail: 100, padded: 128, bytes: 400, fp32: true }, {}],
  'avoid-aicpu': [
    { ops: 'Mul, Equal', dtypes: 'INT16', cann: '8.0.0' },
    { ops: 'IndexPutV2, NonZero', dtypes: 'FLOAT, BOOL', cann: null },
    { ops: 'ArgMin', dtypes: 'DOUBLE', cann: '6.3.RC2' },
    { ops: 'Cast', dtypes: 'COMPLEX128, INT64', cann: null },
    {},
  ],
  'batch-transfer': [{}, { pageable: true, many: false }, { pageable: null, many: true }],
  'broadcast-buffers-off': [{ broadcasts: 48, exposedMs: 19 }, {}],
  'capture-again': [
    { missing: 'ranks,steps,level,trace,stacks,bias,inconsistent', level: 'Level0', steps: 1, ranks: 6 },
    { missing: 'prof-step,repeat,warmup,shapes,activities' },
    { missing: 'modules,size,cut,export,l2,level2' },
    { missing: 'something-new' },
    {},
  ],
  'check-frequency': [{ rank: 3, all: false }, { rank: null, all: true }, {}],
  'check-slow-rank': [
    { reason: 'device', rank: 5 },
    { reason: 'more-work', rank: 5 },
    { reason: 'host', rank: 0 },
    { reason: 'unknown', rank: null },
    {},
  ],
  'dataloader-workers': [
    { iterator: 'single', allRanks: true, intermittent: false, stallMs: 94 },
    { iterator: 'multi', allRanks: false, intermittent: true, stallMs: 9 },
    { iterator: 'multi', allRanks: true, hostSaturated: true },
    {},
  ],
  'drop-casts': [
    { kind: 'pair', narrows: false, from: 'DT_BF16', to: 'FLOAT' },
    { kind: 'pair', narrows: true, from: 'FLOAT', to: 'DT_BF16' },
    { kind: 'weight', passes: 4 },
    {},
  ],
  'expandable-segments': [
    { allocConf: null, unusedGb: 6.2 },
    { allocConf: 'expandable_segments:True' },
    { allocConf: 'max_split_size_mb:64' },
    {},
  ],
  'align-messages': [{ bytes: 1_937_312 }, {}],
  'bucket-size': [
    { kind: 'gradients', calls: 384, bytes: 786_432, role: 'data' },
    { kind: 'parameters', calls: 144, bytes: 65_536, role: 'world' },
    { kind: 'other', calls: 40 },
    {},
  ],
  'check-link': [
    { kind: 'pair', transport: 'HCCS', pair: '1–2', rank: null },
    { kind: 'card', transport: 'RDMA', pair: '1–9', rank: 1 },
    { kind: 'type', transport: 'PCIE', pair: '0–4', rank: null },
    {},
  ],
  'check-network': [{ certain: true }, { certain: false }, {}],
  'ease-contention': [{ op: 'allReduce', slowdown: 1.8 }],
  'expert-balance': [{ peak: 1.8, persistent: true }, { peak: 1.8, persistent: false }, {}],
  'find-late-rank': [
    { kind: 'jitter' },
    { kind: 'ranks-missing', present: 6, worldSize: 8 },
    { kind: 'ranks-missing', present: 6, worldSize: null },
    {},
  ],
  'fix-for-npu': [
    ...[
      'torch_npu.amp',
      'torch_npu.npu_matmul',
      'torch_npu.contrib.ModulationDeformConv',
      'torch_npu.utils.data',
      'torch_npu.contrib.gradient_compress',
      'torch_npu.contrib.pipeline',
      'torch_npu.npu.set_mode',
      'torch.profiler.ProfilerActivity.NPU',
      'torch.slice',
      'something.new',
    ].map((name) => ({ kind: 'unknown-name', name })),
    ...DEPRECATED.map(([name]) => ({ kind: 'deprecated-name', name })),
    { kind: 'deprecated-name', name: 'apex.optimizers.NpuFusedSGD', replacement: 'torch_npu.optim.NpuFusedSGD' },
    ...MIGRATION_KINDS.filter((kind) => kind !== 'deprecated-name').map((kind) => ({ kind })),
    { kind: 'no-such-method', name: 'DataLoader.prefetch' },
    { kind: 'inverted-argument', name: 'keep_prob' },
    { kind: 'private-format', number: '29' },
    {},
  ],
  'fuse-chain': [{ chains: 48, types: 'Abs, Adds, Log, Muls' }, {}],
  'fuse-formula': [{ kernels: 4, types: 'Cast, Sub, Exp' }, {}],
  'fuse-small-ops': [
    { where: 'optimizer', kernels: 900, pattern: 'Mul, Add', taskQueue: null },
    { where: 'forward', kernels: 187, pattern: 'Mul, Cast, Add', taskQueue: '1' },
    { where: 'backward', kernels: 187, pattern: '', taskQueue: '2' },
    { where: 'other', taskQueue: '', launchBlocking: true },
    {},
  ],
  'gc-tuning': [{ guessed: false, ranks: 8 }, { guessed: true, ranks: 1 }, {}],
  'jit-compile-off': [{ calls: 30, hostMs: 80 }, { shapes: 'static' }, { shapes: 'dynamic' }],
  'keep-layout': [
    { types: 'TransData, Transpose', removableMs: 2 },
    { types: 'TransData', removableMs: 0 },
    { types: 'Transpose, AsStrided', removableMs: 1 },
    {},
  ],
  'keep-cached-memory': [{ releases: 1 }, {}],
  'launch-settings': [
    { taskQueue: null, affinity: null, kernels: 900 },
    { taskQueue: '2', affinity: '1', kernels: 900 },
    { taskQueue: '1', affinity: '' },
    { inference: true, kernels: 900 },
    {},
  ],
  'mark-the-gap': [{ gapMs: 20 }],
  'match-versions': [
    { kind: 'ranks', name: 'torch_npu' },
    { kind: 'torch', torchNpu: '2.7.1', torch: '2.6.0+cpu', cann: '8.3.RC1' },
    { kind: 'cann', torchNpu: '2.7.1.post2', cann: '8.1.RC1', expected: '8.5.x,9.0.x,9.1.x' },
    {},
  ],
  'memory-headroom': [
    { kind: 'near', allocConf: null, taskQueue: '2', multiStreamReuse: '0' },
    { kind: 'near', allocConf: 'expandable_segments:True' },
    { kind: 'room' },
    {},
  ],
  'mindspore-dataset-workers': [{ allRanks: true }, { allRanks: false }, { allRanks: true, hostSaturated: true }, {}],
  'no-sync-accumulation': [{ microSteps: 4, exposedMs: 60, sharded: false }, { microSteps: 4, exposedMs: 60, sharded: true }, {}],
  'prepare-batch-in-workers': [{ iterator: 'single', operators: 'aten::pad, aten::stack' }, { iterator: 'multi', operators: '' }, {}],
  'remove-sync': [
    { kind: 'item', perStep: 36, beforeGraph: false },
    { kind: 'shape', perStep: 12, beforeGraph: false },
    { kind: 'to-host', perStep: 2 },
    { kind: 'copy', perStep: 4 },
    { kind: 'stream', perStep: 1, beforeGraph: true },
    { kind: 'device', perStep: 1 },
    { kind: 'event', perStep: 3 },
    { kind: 'drain', perStep: 34 },
    {},
  ],
  'set-environment': [
    { kind: 'ranks', name: 'HCCL_ALGO', count: 2, of: 8 },
    { kind: 'wrong', name: 'HCCL_RDMA_TC' },
    { kind: 'wrong', name: 'PYTORCH_NPU_ALLOC_CONF' },
    { kind: 'wrong', name: 'HCCL_INTRA_PCIE_ENABLE' },
    { kind: 'wrong', name: 'STREAMS_PER_DEVICE' },
    { kind: 'symptom', name: 'ASCEND_LAUNCH_BLOCKING' },
    { kind: 'symptom', name: 'TASK_QUEUE_ENABLE' },
    { kind: 'symptom', name: 'ASCEND_GLOBAL_LOG_LEVEL' },
    { kind: 'symptom', name: 'ASCEND_SLOG_PRINT_TO_STDOUT' },
    { kind: 'symptom', name: 'PYTORCH_NO_NPU_MEMORY_CACHING' },
    { kind: 'symptom', name: 'TORCH_HCCL_BLOCKING_WAIT' },
    { kind: 'symptom', name: 'HCCL_BLOCKING_WAIT' },
    { kind: 'symptom', name: 'HCCL_OP_EXPANSION_MODE' },
    { kind: 'symptom', name: 'HCCL_ALGO' },
    { kind: 'symptom', name: 'HCCL_DETERMINISTIC' },
    { kind: 'symptom', name: 'HCCL_RDMA_TC' },
    { kind: 'symptom', name: 'HCCL_RDMA_SL' },
    { kind: 'symptom', name: 'ACLNN_CACHE_LIMIT' },
    { kind: 'symptom', name: 'CPU_AFFINITY_CONF' },
    { kind: 'symptom', name: 'OMP_NUM_THREADS' },
    { kind: 'symptom', name: 'SOMETHING_NEW' },
    {},
  ],
  'steady-host': [
    { cause: 'gc', oneRank: false },
    { cause: 'sync', oneRank: false },
    { cause: 'preparation', oneRank: true },
    { cause: 'unexplained', oneRank: true },
    { cause: 'launch', oneRank: false },
    {},
  ],
  'overlap-gradient-communication': [{ op: 'allReduce', ddp: true, calls: 17 }, { op: 'reduceScatter', ddp: false, calls: 2 }, {}],
  'pipeline-schedule': [{ stages: 2, microBatches: 2, wanted: 8 }, {}],
  'place-groups': [{ size: 8, cards: 8 }, {}],
  'rebalance-stages': [{ stages: 4, longest: 2, excessMs: 30 }, { stages: 4, longest: 0, microBatches: 8 }, {}],
  'release-tensors': [{ operators: 'aten::add, aten::cat' }, { operators: '' }],
  'use-affinity-api': [
    ...FUSION_PATTERNS.map((pattern) => ({ pattern, trains: true, split: true, form: 'tanh' })),
    { pattern: 'swiglu', trains: true, split: false },
    { pattern: 'gelu', form: 'erf' },
    { pattern: 'expert-loop', trains: false },
    {},
  ],
  'use-fused-optimizer': [
    { what: 'update', optimizer: 'AdamW', kind: 'foreach', tensors: 160 },
    { what: 'update', optimizer: 'Adam', kind: 'combined', tensors: null },
    { what: 'update', optimizer: 'SGD', kind: 'loop', tensors: 24 },
    { what: 'update', optimizer: 'RMSprop', kind: 'loop', tensors: 24 },
    { what: 'update', optimizer: 'Adadelta', kind: 'loop', tensors: 24 },
    { what: 'update', optimizer: 'DistributedOptimizer', kind: 'loop', tensors: null },
    { what: 'zero-grad', optimizer: 'AdamW', kind: '' },
    {},
  ],
  'tune-kernel': [{ reason: 'cores', types: 'Resize', cores: 40 }, { reason: 'cores' }, { reason: 'pipes' }, { reason: 'cache' }, {}],
};

const DDP_IMPORT = 'from torch.nn.parallel import DistributedDataParallel as DDP\n';

function changed(path: string, text: string): SourceTree {
  const lines = text.split('\n');
  const patch = `@@ -0,0 +1,${lines.length} @@\n${lines.map((line) => `+${line}`).join('\n')}`;
  return sourceTreeFrom({ files: [[path, text]], patches: [[path, patch]] });
}

/** Repositories of different kinds, each wholly inside the diff. */
export const TREES: Readonly<Record<string, SourceTree | null>> = {
  none: null,
  empty: sourceTreeFrom({ files: [] }),
  plain: changed(
    'train.py',
    `import torch\nimport torch_npu\nfrom torch.utils.data import DataLoader\n${DDP_IMPORT}torch_npu.npu.set_compile_mode(jit_compile=True)\ntorch.npu.config.allow_internal_format = True\nloader = DataLoader(ds, batch_size=8)\nmodel = DDP(model, device_ids=[local_rank])\nopt = torch.optim.AdamW(model.parameters(), foreach=False)\nfor i, b in enumerate(loader):\n    loss = model(b)\n    loss.backward()\n    if (i + 1) % 4 == 0:\n        opt.step()\nw = torch_npu.npu_format_cast(w, 29)\n`,
  ),
  accelerate: changed(
    'train.py',
    `from accelerate import Accelerator\nfrom transformers import Trainer\nimport os\nos.environ["NPU_JIT_COMPILE"] = "1"\n`,
  ),
  fsdp2: changed(
    'train.py',
    'from torch.distributed.fsdp import fully_shard\nfrom torch.distributed.pipelining import PipelineStage\nmodel = fully_shard(model)\n',
  ),
  fsdp1: changed(
    'train.py',
    'from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\nimport megatron.core\nwith model.no_sync():\n    pass\n',
  ),
  scripts: sourceTreeFrom({
    files: [
      ['run.sh', 'export TASK_QUEUE_ENABLE=0\nexport ASCEND_LAUNCH_BLOCKING=1\ntorchrun train.py\n'],
      [
        'train.py',
        'from torch_npu.contrib import transfer_to_npu\nfrom torch.utils.data import DataLoader\nl = DataLoader(ds, num_workers=args.workers)\n',
      ],
    ],
  }),
};

export interface Situation {
  readonly name: string;
  readonly remedy: Remedy;
  readonly context: RemedyContext;
}

export function contextOf(over: Partial<RemedyContext> = {}): RemedyContext {
  return { soc: 'A2', torch: '2.7.1', torchNpu: '2.7.1.post2', params: {}, source: null, ...over };
}

export function findingOf(over: Partial<Parameters<Remedy['advise']>[0]> = {}): Parameters<Remedy['advise']>[0] {
  return { rule: 'any-rule', ranks: [0, 1, 2, 5], locations: [], confidence: 'high', ...over };
}

export function adviceOf(
  id: string,
  over: Partial<RemedyContext> = {},
  finding: Partial<Parameters<Remedy['advise']>[0]> = {},
): Advice | null {
  return REMEDIES.get(id)!.advise(findingOf(finding), contextOf(over));
}

/** Every remedy × hardware × versions × params × repository. */
export function* situations(): Generator<Situation> {
  for (const [id, remedy] of REMEDIES) {
    for (const soc of SOCS) {
      for (const versions of VERSIONS) {
        for (const params of PARAMS[id] ?? [{}]) {
          for (const [tree, source] of Object.entries(TREES)) {
            const name = `${id} on ${soc ?? 'unknown hardware'}, torch_npu ${versions.torchNpu}, ${JSON.stringify(params)}, source ${tree}`;
            yield { name, remedy, context: { soc, ...versions, params, source } };
          }
        }
      }
    }
  }
}
