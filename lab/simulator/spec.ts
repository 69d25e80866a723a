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
  /** caller of the training function, and the module body */
  main: CodeSite;
  module: CodeSite;
}

/** A performance fault of the simulated job. Sizes left out take the documented default. */
export type Fault = FaultBody & {
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
  | { kind: 'rotating-jitter' /** lateness in ms, default 12 % of the step */; ms?: number };

export type FaultKind = Fault['kind'];

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
  /** `loss.item()` after every backward, default true (a hidden-loader job never has it) */
  itemEveryStep?: boolean;
  /** column and lane names of the profiler release, default 2025-01 */
  era?: '2025-01' | '2025-11';
  /** nested python_function frames written per host operator, default 0; inflates the trace file */
  pythonFrames?: number;
  faults?: Fault[];
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
  faults: Fault[];
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
  for (const kind of ['sync-per-microstep', 'buffer-broadcast', 'hidden-loader'] as const) {
    if (kinds.has(kind) && pp === 2) throw new Error(`${kind} is a fault of a DDP job, not of a pipeline job`);
  }
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
    itemEveryStep: (spec.itemEveryStep ?? true) && !kinds.has('hidden-loader'),
    era: spec.era ?? '2025-01',
    pythonFrames: spec.pythonFrames ?? 0,
    faults,
  };
}
