/**
 * What a trace of torch.profiler on a GPU tells, small enough to keep: a partner for comparison, never a job to diagnose.
 * Plain JSON. Times are ns; those with a place are relative to `originUs`. What the trace does not tell is null, never 0.
 */
export interface GpuFacts {
  /** File of the upload. */
  readonly path: string;
  readonly bytes: number;
  /** e.g. `NVIDIA A100-SXM4-80GB`, as `deviceProperties` has it. */
  readonly device: string | null;
  /** From `distributedInfo`, else from the file's name. */
  readonly rank: number | null;
  readonly worldSize: number | null;
  readonly backend: string | null;
  /** Id of the device whose kernels count: the one with most of them. `otherDevices` ran kernels in the same process and are left out. */
  readonly deviceId: number | null;
  readonly otherDevices: readonly number[];
  /** Whole µs of the trace's own clock. */
  readonly originUs: number;
  /** Captured steps, ascending; empty without `ProfilerStep#N`. At most `MAX_GPU_STEPS`. */
  readonly steps: readonly GpuStep[];
  /** The whole capture as one span: from the first device activity to the end of the last. null when no kernel was recorded. */
  readonly span: GpuSplit | null;
  /**
   * How long the device kept working after the last step's host range ended. When it is long, the host ran ahead, the distances of the steps
   * are the host's pace, and `span` divided by the steps is nearer to the truth. null without steps or kernels.
   */
  readonly drain: number | null;
  /** Sums inside the captured steps, in the whole span without step marks. Longest first; at most `MAX_GPU_NAMES` each. */
  readonly kernels: readonly GpuKernelTotal[];
  readonly ops: readonly GpuOpTotal[];
  readonly ranges: readonly GpuRangeTotal[];
  /** Kernels in `kernels` whose operator is known, divided by all of them: 1 when all are. null without kernels. */
  readonly attributed: number | null;
  /** Where the trace breaks off; null when it is whole. */
  readonly truncated: { readonly events: number; readonly byte: number } | null;
  /** The trace was too long to keep: only its first steps count. null when all do. */
  readonly limited: { readonly kept: number; readonly all: number } | null;
}

export const MAX_GPU_STEPS = 2_000;
export const MAX_GPU_NAMES = 200;

/** Kinds of device work that every accelerator has, whatever its kernels are called. */
export const WORK_CLASSES = [
  'matmul',
  'convolution',
  'attention',
  'norm',
  'elementwise',
  'reduction',
  'copy',
  'communication',
  'optimizer',
  'other',
] as const;
export type WorkClass = (typeof WORK_CLASSES)[number];

export interface ClassTotal {
  readonly count: number;
  /** Sum of durations; activities of two streams count twice. */
  readonly ns: number;
}

/** Device time of one span. All durations but those of `classes` are union lengths. */
export interface GpuSplit {
  readonly start: number;
  readonly end: number;
  /** Kernels, without copies and memsets. */
  readonly kernels: number;
  /** Compute kernels. */
  readonly computing: number;
  /** NCCL kernels. */
  readonly communication: number;
  /** NCCL kernels while no compute kernel ran. */
  readonly exposed: number;
  /** NCCL kernels while a compute kernel ran: `communication − exposed`. */
  readonly overlapped: number;
  /** Copies and memsets while neither ran. */
  readonly copying: number;
  /** Anything at all on the device. */
  readonly busy: number;
  /** `end − start − busy`. */
  readonly idle: number;
  readonly classes: Readonly<Record<WorkClass, ClassTotal>>;
}

/** One `ProfilerStep#N`: from its start to the start of the next one, the last one to its own end. */
export interface GpuStep extends GpuSplit {
  readonly id: number;
  /** Length of the host's own range. */
  readonly hostNs: number;
  /** False when the end of a cut trace lies inside the step. */
  readonly whole: boolean;
}

export interface GpuKernelTotal {
  /** Without template arguments. */
  readonly name: string;
  readonly class: WorkClass;
  readonly count: number;
  readonly ns: number;
}

/** An operator: the outermost `aten::…` (or custom `…::…`) call around the launch. A backward node counts under the operator it calls. */
export interface GpuOpTotal {
  readonly name: string;
  readonly class: WorkClass;
  /** Outermost calls on the host, those without a kernel, too. */
  readonly calls: number;
  readonly kernels: number;
  /** Device time of its kernels. */
  readonly ns: number;
}

/** A module (`nn.Module: Linear`) or a `record_function` range. Ranges lie inside each other: never add them up. */
export interface GpuRangeTotal {
  readonly name: string;
  readonly kind: 'module' | 'annotation';
  readonly calls: number;
  readonly hostNs: number;
  readonly kernels: number;
  /** Device time of the kernels launched inside, on the same thread or on the threads of autograd. */
  readonly ns: number;
}
