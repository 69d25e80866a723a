import { CARDS_PER_NODE, nodeOf } from './groups.ts';

/** One user frame of a Python call stack. */
export interface CodeSite {
  file: string;
  line: number;
  func: string;
}

/** The call sites of the simulated training script that show up in call stacks. */
export interface CodeMap {
  /** `for batch in loader` */
  loader: CodeSite;
  /** `batch.to(device)` */
  h2d: CodeSite;
  /** the model's own forward (frame below DistributedDataParallel) */
  forward: CodeSite;
  loss: CodeSite;
  backward: CodeSite;
  zeroGrad: CodeSite;
  optimizerStep: CodeSite;
  /** the call of the wrapped model, `out = model(batch)` */
  ddp: CodeSite;
  /** the operator that is compiled again in every step */
  compile: CodeSite;
  /** `loss.item()` */
  item: CodeSite;
  /** the Python loop that launches the tiny kernels */
  smallOps: CodeSite;
  /** the removable transpose */
  layout: CodeSite;
  /** what turns a fetched batch into tensors, on the main thread */
  prepare: CodeSite;
  /** a value read back in the forward */
  check: CodeSite;
  /** caller of the training function, and the module body */
  main: CodeSite;
  module: CodeSite;
}

/**
 * A performance fault of the simulated job. Sizes left out take the documented default. `hidden`: the same on the host while the device
 * has work queued, so that it costs nothing.
 */
export type Fault = (FaultBody | HostFault | ComputeFault | FusionFault) & {
  /** keep the job's structure but do it right: the same work without the cost of the fault */
  off?: boolean;
};

type FaultBody =
  | {
      kind: 'slow-loader';
      /** ranks whose loader is slow; default all */
      ranks?: number[];
      /** time one worker (or the main process when `single`) needs for one batch, in ms */
      sampleMs?: number;
      /** no workers: `_SingleProcessDataLoaderIter` */
      single?: boolean;
    }
  | {
      kind: 'hidden-loader';
      /** length of the fetch in ms; default 60 % of the step */
      fetchMs?: number;
    }
  | {
      kind: 'small-ops';
      /** tiny kernels per step, default 560 in the optimizer and 400 in the forward (spread over its micro-batches) */
      perStep?: number;
      where?: 'optimizer' | 'forward';
    }
  | { kind: 'slow-rank'; rank: number /** device kernel time multiplier, default 1.15 */; factor?: number }
  | { kind: 'slow-host'; rank: number /** host time multiplier, default 4 */; factor?: number }
  | { kind: 'stage-imbalance' /** layers moved from the first to the last stage, default 1 */; extraLayers?: number }
  | {
      kind: 'layout';
      /** inverse conversion pairs per step and rank, default 2 per layer (4 in a pipeline job) */
      perStep?: number;
      /** device time of one conversion in us, default 200 */
      us?: number;
    }
  | { kind: 'recompile' /** compiles per step, default 2 */; perStep?: number /** ms per compile, default 12 % of the step */; ms?: number }
  | { kind: 'buffer-broadcast' /** module buffers of 20 MB each, default 16 */; buffers?: number }
  | { kind: 'sync-per-microstep' /** micro-steps per optimizer step, default 4 */; microSteps?: number }
  | {
      /** sequences of unequal length: in each step another rank computes most and another least */
      kind: 'uneven-batches';
      /** how much more the longest batch holds than the mean, default 0.25; the shortest as much less */
      spread?: number;
    }
  | { kind: 'rotating-jitter' /** lateness in ms, default 12 % of the step */; ms?: number }
  | {
      /** single steps that take longer than the others */
      kind: 'slow-steps';
      /** numbers of the slow steps, from 0 for the first captured one */
      steps: number[];
      /** what takes longer: the host pauses without an operator (default), the fetch waits, or collectives move slower */
      cause?: 'pause' | 'fetch' | 'collective';
      /** how much longer a pause or a fetch takes, default 25 % of the step; collectives take 12 times as long */
      ms?: number;
      /** rank of the pause or the fetch, default 0 */
      rank?: number;
    }
  | {
      kind: 'slow-link';
      /** the two ranks at its ends */
      ranks: [number, number];
      /** how many times as long it takes for the same bytes, default 5 */
      factor?: number;
    }
  | {
      kind: 'small-messages';
      /** parameter shards gathered one by one before each layer (default), or gradients reduced in tiny buckets */
      where?: 'forward' | 'gradients';
      /** messages per layer (forward, default 12) or per matrix of gradients (default 12) */
      count?: number;
      /** bytes of one gathered message, default 64 KiB */
      bytes?: number;
    }
  | { kind: 'no-overlap' }
  | { kind: 'few-micro-batches' /** micro-batches the same global batch is cut into, default 2 */; microBatches?: number }
  | {
      kind: 'expert-imbalance';
      /** tokens of the busiest rank over the mean, default 1.8 */
      peak?: number;
      /** the rank that is busiest in every layer; default another one in each layer and step */
      rank?: number;
    }
  | { kind: 'contention' /** how many times as long gradient buckets take beside computing, default 1.8 */; factor?: number };

/** What slows the kernels themselves (compute-faults.ts). */
export type ComputeFault =
  | {
      /** an operator on the AI CPU; right: the same on an AI core */
      kind: 'aicpu-op';
      /** element-wise on 16-bit integers (default), or boolean indexing */
      of?: 'mul' | 'index';
      /** default 4 */
      perStep?: number;
      /** default 2500 */
      us?: number;
    }
  | {
      /** casts that undo each other; right: none */
      kind: 'cast-pair';
      /** default 2 per layer */
      perStep?: number;
      us?: number;
      /** a kernel between computes on the converted tensor: mixed precision, not a fault */
      used?: boolean;
    }
  | {
      /** weights cast in each of the passes of a step; right: in the first only */
      kind: 'weight-cast';
      /** default 4 */
      microSteps?: number;
      /** times as long as the bytes need, default 4 */
      slowness?: number;
    }
  | {
      /** a formula over the logits as one kernel per operation, with reductions between; right: one kernel */
      kind: 'vector-chain';
      /** default 2 */
      perStep?: number;
    }
  | { kind: 'few-blocks' /** blocks of a kernel on 48 cores, default 12 */; blocks?: number; perStep?: number; us?: number }
  | { kind: 'loose-matmul' /** time of the products over the vocabulary relative to well-shaped ones, default 2 */; factor?: number }
  | { kind: 'idle-pipes' }
  | {
      /** a slower clock while the AI cores are busy; `idle`: only while they are not, which costs nothing */
      kind: 'frequency-drop';
      /** default all */
      ranks?: number[];
      /** default 1440, 800 when idle; nominal is 1800 */
      mhz?: number;
      idle?: boolean;
    };

/** What is written out although one kernel computes it (fusion-faults.ts). */
export type FusionFault =
  | {
      /** an operator of each layer as several kernels, forward and backward; right: the fused operator */
      kind: 'unfused';
      of: 'attention' | 'expert-loop' | 'gelu' | 'masked-softmax' | 'rms-norm' | 'rotary' | 'swiglu' | 'transposed-product';
    }
  | {
      /** element-wise kernels that pass one tensor on; right: one kernel */
      kind: 'elementwise-chain';
      /** default 1 */
      perLayer?: number;
      /** kernels, default 4 */
      length?: number;
    }
  | {
      /** AdamW by one kernel per operation over all parameters (default), or per operation and parameter; right: fused */
      kind: 'unfused-optimizer';
      how?: 'foreach' | 'loop';
    }
  | { /** zero_grad fills every gradient; right: drops it */ kind: 'zero-fill' }
  | { /** kernel types of known formulas in their order on tensors that do not belong together: not a fault */ kind: 'look-alike' };

/** What holds up the host (host-faults.ts). */
export type HostFault =
  | {
      kind: 'stream-sync';
      /** what blocks the host, default item; collective drains the device before and after each collective */
      of?: 'item' | 'nonzero' | 'stream' | 'device' | 'collective';
      /** default 3 per layer */
      perStep?: number;
      hidden?: boolean;
    }
  | { kind: 'launch-blocking' }
  | {
      kind: 'gc-pause';
      /** length of one pause, default 12 % of the step; one per step and rank, each time somewhere else */
      ms?: number;
      /** the profiler records garbage collections, default true */
      lane?: boolean;
      hidden?: boolean;
    }
  | {
      kind: 'alloc-stall';
      /** allocator calls per step, default 24 */
      perStep?: number;
      /** all calls of a step together, default 10 % of the step */
      ms?: number;
      /** the loop empties the cache at the end of each step */
      emptyCache?: boolean;
      hidden?: boolean;
    }
  | {
      kind: 'batch-preparation';
      /** default 10 % of the step */
      ms?: number;
      /** what the profile shows of it, default operators */
      shows?: 'operators' | 'frames' | 'nothing';
      hidden?: boolean;
    }
  | {
      kind: 'pageable-copy';
      /** size of the batch, default what takes 10 % of the step */
      mb?: number;
      /** the copy runs on a stream of its own, one batch ahead */
      hidden?: boolean;
    }
  | { kind: 'host-bound' /** host time multiplier of all ranks, default 5 */; factor?: number; hidden?: boolean };

export type FaultKind = Fault['kind'];

/** What the memory of each rank looks like. The tables are written only when a job has one; time is not affected. */
export interface MemorySpec {
  /** weights, gradients and optimizer state, default 9 GiB */
  baseGb?: number;
  /** activations of one step, default 6 GiB */
  stepGb?: number;
  /** reserved beyond the peak, default 0.3 GiB */
  unusedGb?: number;
  /** never released, MiB per step */
  growMb?: number;
  /** a block that fits in what is unused, but not in one piece, MiB: in each step the allocator takes that much more from the device */
  splinterMb?: number;
  /** the optimizer state comes only with the first captured step */
  stateInFirstStep?: boolean;
  /** the allocator gives memory back at the end of each step and takes it again (`empty_cache` in the loop) */
  churn?: boolean;
  /** HCCL and runtime, default 0.7 GiB */
  otherGb?: number;
  /** memory of the card as `ci_run` records it; default not recorded */
  deviceGb?: number;
}

/** What to simulate. */
export interface JobSpec {
  ranks: number;
  /** profiled consecutive steps, default 4 */
  steps?: number;
  seed?: number;
  level?: 0 | 1 | 2;
  withStack?: boolean;
  /** number of the first profiled step, default 10 */
  firstStep?: number;
  /** pipeline stages, default 1 */
  pp?: 1 | 2;
  /** transformer layers of the whole model, default 12 */
  layers?: number;
  /** micro-batches per step of a pipeline job, default 8 */
  microBatches?: number;
  /** ranks whose folders are written, default all */
  uploadedRanks?: number[];
  /** write parallel_group_info and the world size, default true */
  parallelGroupInfo?: boolean;
  code?: Partial<CodeMap>;
  /** device name, written as user metadata (`ci_run`) because text exports do not name the device */
  soc?: string;
  /** constant offset per rank in us, added to all its timestamps */
  clockSkewUs?: number[];
  /** loader worker processes per rank, default 4 */
  numWorkers?: number;
  /** `loss.item()` after every backward, default true (a job with something hidden never has it) */
  itemEveryStep?: boolean;
  /** column and lane names of the profiler release, default 2025-01 */
  era?: '2025-01' | '2025-11';
  /** nested python_function frames written per host operator, default 0; inflates the trace file */
  pythonFrames?: number;
  /** memory of the cards; with it `profile_memory` is on and the memory tables are written */
  memory?: MemorySpec;
  /** environment variables; those that the profiler does not record go to `ci_env` */
  env?: Record<string, string>;
  /** other values on single ranks */
  envOfRank?: Record<number, Record<string, string>>;
  /** versions in place of those of the era; null is not recorded */
  versions?: Versions;
  versionsOfRank?: Record<number, Versions>;
  profiler?: ProfilerOptions;
  faults?: Fault[];
}

export interface Versions {
  torch?: string | null;
  torchNpu?: string | null;
  cann?: string | null;
}

/** Settings of the profiler that change what is recorded of them, not the times. */
export interface ProfilerOptions {
  withModules?: boolean;
  profileMemory?: boolean;
  l2Cache?: boolean;
  /** null: no schedule was given */
  schedule?: { wait?: number; warmup?: number; active?: number; repeat?: number; skipFirst?: number } | null;
}

const site = (line: number, func: string): CodeSite => ({ file: '/workspace/repo/train.py', line, func });

/** Call sites used when the spec names none. */
export const DEFAULT_CODE: CodeMap = {
  loader: site(88, 'train'),
  h2d: site(90, 'train'),
  forward: site(41, 'forward'),
  loss: site(94, 'train'),
  backward: site(95, 'train'),
  zeroGrad: site(92, 'train'),
  optimizerStep: site(98, 'train'),
  ddp: site(93, 'train'),
  compile: site(37, 'forward'),
  item: site(96, 'train'),
  smallOps: site(56, 'step'),
  layout: site(44, 'forward'),
  prepare: site(72, 'prepare'),
  check: site(47, 'forward'),
  main: site(121, 'main'),
  module: site(125, '<module>'),
};

/** A spec with every default filled in. */
export interface ResolvedSpec {
  ranks: number;
  steps: number;
  warmup: number;
  seed: number;
  level: 0 | 1 | 2;
  withStack: boolean;
  firstStep: number;
  pp: 1 | 2;
  layers: number;
  microBatches: number;
  uploadedRanks: number[];
  parallelGroupInfo: boolean;
  code: CodeMap;
  soc: string | null;
  clockSkewUs: number[];
  numWorkers: number;
  itemEveryStep: boolean;
  era: '2025-01' | '2025-11';
  pythonFrames: number;
  memory: MemorySpec | null;
  env: Record<string, string>;
  envOfRank: Record<number, Record<string, string>>;
  versions: Versions;
  versionsOfRank: Record<number, Versions>;
  profiler: ProfilerOptions;
  faults: Fault[];
}

const DDP_ONLY = [
  'sync-per-microstep',
  'buffer-broadcast',
  'hidden-loader',
  'small-messages',
  'no-overlap',
  'expert-imbalance',
  'contention',
] as const;

/** Across servers only cards of the same place are linked. */
function checkLink([a, b]: [number, number], ranks: number): void {
  const isThere = [a, b].every((rank) => Number.isInteger(rank) && rank >= 0 && rank < ranks);
  if (!isThere || a === b || (nodeOf(a) !== nodeOf(b) && a % CARDS_PER_NODE !== b % CARDS_PER_NODE)) {
    throw new Error(`there is no link between ranks ${a} and ${b}`);
  }
}

/** Steps simulated before the capture starts, so that queues and loaders are in steady state. */
const WARMUP_STEPS = 4;

/** Fills in defaults and refuses specs that make no job. */
export function resolveSpec(spec: JobSpec): ResolvedSpec {
  const pp = spec.pp ?? 1;
  if (!Number.isInteger(spec.ranks) || spec.ranks < 1) throw new Error(`ranks must be a positive integer, got ${spec.ranks}`);
  if (spec.ranks % pp !== 0) throw new Error(`${spec.ranks} ranks cannot be split into ${pp} pipeline stages`);
  const faults = spec.faults ?? [];
  const kinds = new Set(faults.map((fault) => fault.kind));
  if (kinds.has('stage-imbalance') && pp === 1) throw new Error('stage-imbalance needs pp: 2');
  if (kinds.has('few-micro-batches') && pp === 1) throw new Error('few-micro-batches needs pp: 2');
  for (const kind of DDP_ONLY) {
    if (kinds.has(kind) && pp === 2) throw new Error(`${kind} is a fault of a DDP job, not of a pipeline job`);
  }
  for (const fault of faults) if (fault.kind === 'slow-link') checkLink(fault.ranks, spec.ranks);
  const ranks = spec.ranks;
  return {
    ranks,
    steps: spec.steps ?? 4,
    warmup: WARMUP_STEPS,
    seed: spec.seed ?? 1,
    level: spec.level ?? 1,
    withStack: spec.withStack ?? true,
    firstStep: spec.firstStep ?? 10,
    pp,
    layers: spec.layers ?? 12,
    microBatches: spec.microBatches ?? 8,
    uploadedRanks: spec.uploadedRanks ?? Array.from({ length: ranks }, (_, rank) => rank),
    parallelGroupInfo: spec.parallelGroupInfo ?? true,
    code: { ...DEFAULT_CODE, ...spec.code },
    soc: spec.soc ?? null,
    clockSkewUs: spec.clockSkewUs ?? [],
    numWorkers: spec.numWorkers ?? 4,
    itemEveryStep: (spec.itemEveryStep ?? true) && !kinds.has('hidden-loader') && !faults.some((f) => 'hidden' in f && f.hidden === true),
    era: spec.era ?? '2025-01',
    pythonFrames: spec.pythonFrames ?? 0,
    memory: spec.memory ?? null,
    env: spec.env ?? {},
    envOfRank: spec.envOfRank ?? {},
    versions: spec.versions ?? {},
    versionsOfRank: spec.versionsOfRank ?? {},
    profiler: spec.profiler ?? {},
    faults,
  };
}
