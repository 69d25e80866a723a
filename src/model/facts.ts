import type { Intervals } from '../base/intervals.ts';
import type {
  ApiRow,
  CaptureFiles,
  CaptureSettings,
  Frame,
  GroupInfo,
  Hardware,
  HostOpSummary,
  InputRecord,
  LinkSummary,
  MemoryBlock,
  MemoryGrowth,
  MemorySeries,
  OperatorRow,
  Pipe,
} from './capture.ts';
import type { Message } from './lang.ts';

/**
 * Tier one: what is known of one rank, small enough that thousands of ranks fit. Tier two (`facts/job`) sees only these.
 * Times are ns since the rank's own zero unless a name says otherwise.
 */
export interface RankFacts {
  /** File prefix for evidence, e.g. `rank0_ascend_pt`. */
  readonly folder: string;
  readonly rank: number | null;
  readonly originUs: number;
  readonly files: CaptureFiles;
  readonly settings: CaptureSettings;
  readonly groups: readonly GroupInfo[];
  readonly worldSize: number | null;
  readonly parallel: Readonly<Record<string, number>>;
  readonly links: LinkSummary | null;
  readonly capabilities: ReadonlySet<Capability>;
  readonly steps: readonly StepFacts[];
  readonly collectives: readonly CollectiveFacts[];
  readonly tape: Tape | null;
  readonly loader: LoaderFacts | null;
  readonly compile: CompileFacts | null;
  readonly fragments: readonly FragmentFacts[];
  readonly layout: LayoutFacts | null;
  readonly kernels: KernelFacts | null;
  readonly casts: CastFacts | null;
  readonly chains: ChainFacts | null;
  readonly fusion: FusionFacts | null;
  readonly optimizers: OptimizerFacts | null;
  readonly frequency: FrequencyFacts | null;
  readonly hardware: Hardware | null;
  readonly phases: PhaseFacts;
  /** Parts of a capture that has no step marks; at most 5,000, in order. */
  readonly segments: readonly SegmentFacts[];
  readonly host: HostFacts | null;
  /** Waits of a capture that has no step marks, most idle time of the device first; with marks they are in `host`. */
  readonly waits: readonly WaitTotal[];
  /** Classes of modules, those with most device time first; empty without `with_modules` or `with_stack`. */
  readonly modules: readonly ModuleTotal[];
  readonly idle: IdleFacts | null;
  readonly operators: readonly TypeTotal[];
  readonly opStatistic: readonly OperatorRow[];
  readonly apis: readonly ApiRow[];
  readonly hostOps: readonly HostOpSummary[];
  readonly memory: MemoryFacts | null;
  readonly inputs: readonly InputRecord[];
  readonly notes: readonly Message[];
  /** Where files of this rank end too early: a caveat of every finding on it, whose confidence is then medium at most. */
  readonly damage: readonly Message[];
}

/** What was said of the upload besides its ranks: files of no rank, captures that were not chosen, ranks that nobody parsed. */
export interface UploadFacts {
  readonly inputs: readonly InputRecord[];
  readonly notes: readonly Message[];
  /** Ranks of the job that were uploaded and cannot be read. */
  readonly otherRanks: readonly number[];
}

/** What a profile can answer. A rule that needs one that no rank has is "not applicable". */
export type Capability =
  | 'steps'
  | 'step-times'
  | 'host-ops'
  | 'launches'
  | 'kernels'
  | 'kernel-types'
  | 'kernel-cores'
  | 'pipes'
  | 'l2-hits'
  | 'frequency'
  | 'formats'
  | 'collectives'
  | 'collective-ids'
  | 'cann-calls'
  | 'stacks'
  | 'memory';

/** One captured step of one rank. */
export interface StepFacts {
  readonly id: number | null;
  /** Host window; NaN without step marks. */
  readonly start: number;
  readonly end: number;
  /** ms, from step_trace_time.csv, else from the overlap lanes, else from the kernels. NaN when unknown. */
  readonly breakdown: {
    readonly stepMs: number;
    readonly stageMs: number;
    readonly computingMs: number;
    readonly communicationMs: number;
    readonly exposedMs: number;
    readonly overlappedMs: number;
    readonly freeMs: number;
    readonly bubbleMs: number;
    readonly preparingMs: number;
    readonly tailMs: number;
    readonly source: string;
  };
}

/** One collective or point-to-point call of one rank. */
export interface CollectiveFacts {
  readonly step: number | null;
  /** Same on every rank of the group: group id, then the call's name. */
  readonly key: string;
  readonly name: string;
  /** allReduce, broadcast, … lower camel case as in the name. */
  readonly op: string;
  readonly group: string;
  readonly p2p: boolean;
  readonly start: number;
  readonly end: number;
  /** ms from communication.json; NaN without it. */
  readonly transitMs: number;
  readonly waitMs: number;
  /** Bytes this rank moved over all links, and the links' times summed, ms: inside the server, and between servers. NaN when unknown. */
  readonly bytes: number;
  readonly sdmaMs: number;
  readonly rdmaBytes: number;
  readonly rdmaMs: number;
  /** Bytes of the tensor; NaN when unknown. */
  readonly payload: number;
  /** Part of [start, end) not covered by computing on this rank. */
  readonly exposed: number;
  /** Last part of it, when computing went on right after this call or after those behind it: what computing waited for. NaN when unknown. */
  readonly blocked: number;
  /** Host instant of the call; NaN when unknown. */
  readonly launch: number;
  /** Instant of the framework call that asked for it, before any queue between the two; NaN when unknown. */
  readonly issued: number;
  /** Node of the tape, or -1. */
  readonly node: number;
}

export const COMPUTE = 0;
export const COMMUNICATION = 1;
export const COPY = 2;

/**
 * Device work of one rank in start order, with the host instant that issued it, and the host's own blocking points.
 * What the replay runs on. Parallel arrays, one entry per node.
 */
export interface Tape {
  readonly kind: Uint8Array;
  readonly stream: Int32Array;
  readonly start: Float64Array;
  readonly duration: Float64Array;
  /** Host instant of the launch; NaN when the profile does not tell. */
  readonly launch: Float64Array;
  /** Index into `types`. */
  readonly type: Int32Array;
  readonly types: readonly string[];
  /** Index into `shapes`: the input shapes of a kernel as the profile writes them; -1 when unknown. */
  readonly shape: Int32Array;
  readonly shapes: readonly string[];
  /** Index into `collectives` of the rank, or -1. */
  readonly collective: Int32Array;
  /** Index into `steps` by launch time (else by start), or -1. */
  readonly step: Int32Array;
  /** Index into `frames`, or -1. */
  readonly frame: Int32Array;
  readonly frames: readonly Frame[];
  /** Union of all nodes. */
  readonly busy: Intervals;
  /** Host calls that waited for the device: [start, end), and which of `HostFacts.syncs` each belongs to, or -1. */
  readonly syncs: { readonly start: Float64Array; readonly end: Float64Array; readonly site: Int32Array };
  /** Ranges of `Optimizer.step#…` on the host. */
  readonly optimizer: Intervals;
  /** Median distance of consecutive launches in dense regions, ns: what one launch costs the host. NaN when unknown. */
  readonly launchInterval: number;
}

export interface LoaderFacts {
  readonly iterator: 'single' | 'multi' | 'unknown';
  readonly frame: Frame | null;
  /** One entry per fetch on the training thread, outermost only. */
  readonly fetches: readonly { step: number; start: number; end: number; stall: number }[];
}

export interface CompileFacts {
  readonly frame: Frame | null;
  /** One entry per online compilation call, outermost only. */
  readonly calls: readonly { step: number; start: number; end: number; idle: number }[];
}

/** A run of small kernels that the host could not feed. Node numbers are positions in the tape's launch order of one step. */
export interface FragmentFacts {
  readonly step: number;
  readonly nodes: readonly number[];
  /** Idle device time in the run because nothing had been launched, ns. */
  readonly starved: number;
  readonly busy: number;
  readonly start: number;
  readonly end: number;
  /** Length of the repeating sequence of op types and how often it repeats; 0 when none was found. */
  readonly period: number;
  readonly repeats: number;
  readonly pattern: readonly string[];
  readonly where: 'optimizer' | 'forward' | 'backward' | 'other';
  readonly frame: Frame | null;
}

export interface LayoutFacts {
  /** Per step index: kernels of layout type, their union time, and those that can go. */
  readonly steps: readonly {
    readonly step: number;
    readonly count: number;
    readonly ns: number;
    readonly computeNs: number;
    readonly removable: readonly number[];
    readonly removableNs: number;
  }[];
  readonly byType: readonly { type: string; count: number; ns: number }[];
  /** Removable pairs by site: the two op types, formats and shapes. */
  readonly sites: readonly { description: string; count: number; ns: number; frame: Frame | null; line: number }[];
  readonly typesFromNames: boolean;
}

/** No group: communication, copies, and kernels beyond the groups that are kept. */
export const UNGROUPED = 255;

/** Compute kernels that agree in type, core, shapes, data types and formats, those of the captured steps together. */
export interface KernelFacts {
  /** Most time first; at most 200, those on the AI CPU among them. */
  readonly groups: readonly KernelGroup[];
  /** Index into `groups` of each node of the tape, or `UNGROUPED`. */
  readonly ofNode: Uint8Array;
  /** What the kept groups leave out. */
  readonly other: { readonly count: number; readonly ns: number };
}

export interface KernelGroup {
  readonly type: string;
  /** AI_CORE, AI_VECTOR_CORE, MIX_AIC, MIX_AIV, AI_CPU, …; '' when the capture does not tell. */
  readonly core: string;
  readonly inputShapes: string;
  readonly inputTypes: string;
  readonly inputFormats: string;
  readonly outputShapes: string;
  readonly outputTypes: string;
  readonly outputFormats: string;
  readonly count: number;
  readonly ns: number;
  readonly minNs: number;
  readonly maxNs: number;
  /** Sum by step index, ns. */
  readonly stepNs: Float64Array;
  /** Share of the kernels' time in which each pipe was busy, by time; NaN when not measured. */
  readonly pipes: Readonly<Record<Pipe, number>>;
  /** Mean number of blocks; NaN when unknown. */
  readonly blocks: number;
  /** What one kernel reads and writes by its shapes, bytes; NaN when unknown. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Share of the reads that the L2 cache answered; NaN when unknown. */
  readonly l2Hit: number;
  /** Kernels that ran wholly at this rank's highest sustained frequency. */
  readonly fast: { readonly count: number; readonly ns: number };
  /** Line of the code that most of them come from. */
  readonly frame: Frame | null;
  /** Row of the kernel table, and the longest of them. */
  readonly line: number;
  readonly longest: { readonly start: number; readonly duration: number; readonly step: number };
}

/** Casts that undo each other with nothing between that uses the converted tensor. */
export interface CastFacts {
  readonly steps: readonly {
    readonly step: number;
    readonly count: number;
    readonly ns: number;
    /** Nodes of the tape that can go, and those of them that can go whatever else uses the converted tensor. */
    readonly removable: readonly number[];
    readonly certain: readonly number[];
    readonly removableNs: number;
    /** Casts of weights after the first pass over the model in a step. */
    readonly repeated: readonly number[];
    readonly repeatedNs: number;
  }[];
  readonly sites: readonly {
    readonly kind: 'pair' | 'weight';
    readonly from: string;
    readonly to: string;
    readonly shape: string;
    readonly count: number;
    readonly ns: number;
    readonly frame: Frame | null;
    readonly line: number;
  }[];
}

/** Runs of large vector kernels bound by memory that pass the same tensor on: each writes what the next reads. */
export interface ChainFacts {
  readonly steps: readonly {
    readonly step: number;
    readonly ns: number;
    readonly savedNs: number;
    /** Nodes of the tape, and which part of each one's time the traffic that cannot go needs. */
    readonly nodes: readonly number[];
    readonly left: readonly number[];
  }[];
  /** By types and shape, most to save first. */
  readonly chains: readonly {
    readonly types: readonly string[];
    readonly shape: string;
    readonly count: number;
    readonly ns: number;
    /** Part of `ns` that moves what only the run itself reads again, at the bandwidth the run reached. */
    readonly savedNs: number;
    readonly bytes: number;
    readonly frame: Frame | null;
    readonly line: number;
    readonly start: number;
    readonly duration: number;
  }[];
}

/**
 * What a known operator computes, written out as several kernels.
 *   attention           scores, scale, mask, softmax and the weighted sum, each through memory
 *   expert-loop         one expert after the other: rows picked, multiplied, put back
 *   gelu                GELU from its formula
 *   layer-norm, rms-norm, softmax   from their formulas
 *   masked-softmax      scale, boolean mask and softmax
 *   rotary              rotary position embedding
 *   swiglu              SiLU and the product with the other half
 *   transposed-batch    copies in another order around a batched product
 *   transposed-product  a copy with the last two axes swapped that only a matrix product reads
 */
export const FUSION_PATTERNS = [
  'attention',
  'expert-loop',
  'gelu',
  'layer-norm',
  'masked-softmax',
  'rms-norm',
  'rotary',
  'softmax',
  'swiglu',
  'transposed-batch',
  'transposed-product',
] as const;
export type FusionPattern = (typeof FUSION_PATTERNS)[number];

/** Kernels that one kernel could do: proven by the tensors that they pass on, each kernel in one sequence at most. null: no shapes. */
export interface FusionFacts {
  /** Alike in pattern, types and shapes; most time first, at most 80. */
  readonly sequences: readonly FusionSequence[];
}

export interface FusionSequence {
  /** null: element-wise kernels without a name. */
  readonly pattern: FusionPattern | null;
  readonly phase: 'forward' | 'backward';
  readonly types: readonly string[];
  /** Tensor that the first kernel reads; `*` where many shapes are told together. Figures of one occurrence are then means. */
  readonly shape: string;
  readonly dataType: string;
  /** How often, over the captured steps, how long the kernels take in all, and how long the device is idle between them. */
  readonly count: number;
  readonly ns: number;
  readonly idleNs: number;
  /** Kernels of one occurrence; `nodes` holds those of one after the other, `steps` the step index of each occurrence. */
  readonly size: number;
  readonly nodes: Int32Array;
  readonly steps: Int32Array;
  /** Times the same kernels run in one occurrence: experts of a loop, else 1. */
  readonly repeats: number;
  /** Bytes that the kernels of one occurrence move, and that one kernel in their place would have to; NaN when unknown. */
  readonly bytes: number;
  readonly needed: number;
  /** Work that fusing leaves or adds, ns: products of the experts, scores computed a second time. */
  readonly staysNs: number;
  /** Time of the quickest of them, ns: one kernel in their place takes no less. */
  readonly leastNs: number;
  /** Time in which the vector units were busy in one occurrence, ns; NaN when not measured. */
  readonly vectorNs: number;
  readonly frame: Frame | null;
  /** Row of the kernel table, and the first occurrence. */
  readonly line: number;
  readonly start: number;
  readonly duration: number;
}

/**
 * How an optimizer updates the parameters.
 *   fused     one kernel computes the update
 *   foreach   one kernel per operation over the list of all parameters
 *   combined  one kernel per operation over one long tensor
 *   loop      one kernel per operation and parameter
 *   other     none of these can be told
 */
export const OPTIMIZER_KINDS = ['fused', 'foreach', 'combined', 'loop', 'other'] as const;
export type OptimizerKind = (typeof OPTIMIZER_KINDS)[number];

export interface OptimizerFacts {
  /** Calls of an optimizer's step inside the captured steps, in order; at most 256. */
  readonly calls: readonly {
    readonly step: number;
    /** Class as the range names it; '' when it does not. */
    readonly name: string;
    readonly kind: OptimizerKind;
    /** On the device, first kernel to last. */
    readonly start: number;
    readonly end: number;
    readonly nodes: Int32Array;
    readonly ns: number;
    /** Idle between its kernels, ns. */
    readonly idle: number;
    /** Kernels of the repeating sequence and how often it repeats; 0 without one. */
    readonly period: number;
    readonly repeats: number;
    readonly types: readonly string[];
    /** How often memory as large as all parameters is read or written; NaN when a kernel of it is not known. */
    readonly passes: number;
    /** Parameters that it updates; NaN when the profile does not tell. */
    readonly tensors: number;
    readonly frame: Frame | null;
  }[];
  /** Gradients filled with zeros instead of dropped, by call of zero_grad; at most 256. */
  readonly fills: readonly {
    readonly step: number;
    readonly nodes: Int32Array;
    readonly ns: number;
    readonly start: number;
    readonly end: number;
    readonly frame: Frame | null;
  }[];
}

export interface FrequencyFacts {
  /** Time in which an AI core was busy at each frequency inside the captured steps, highest first; at most 32. */
  readonly busy: readonly { readonly mhz: number; readonly ns: number }[];
  /** Mean while busy, by time. */
  readonly meanMhz: number;
  /** Highest frequency held for at least a twentieth of the busy time. */
  readonly sustainedMhz: number;
  /** The longest busy stretch at the lowest sustained frequency, for evidence. */
  readonly lowest: { readonly mhz: number; readonly start: number; readonly duration: number };
}

/**
 * `forward`: one pass through the model, in captures without step marks. `phase`: the whole capture as the part of a larger program that its
 * folder names. Segments of one unit never overlap. ns on the device's timeline.
 */
export interface SegmentFacts {
  readonly unit: 'forward' | 'phase';
  /** What runs in it: `prefill`, `decode`, `mixed`, `rollout`, `update`, `reference`, `reward`; null when nothing tells. */
  readonly kind: string | null;
  /** What it was found by. */
  readonly basis: 'annotation' | 'graph-replay' | 'layer-pattern' | 'folder';
  readonly start: number;
  readonly end: number;
  /** Union of the device work inside. */
  readonly busy: number;
}

export interface PhaseFacts {
  /** Per step index: host calls of the model's forward, of the optimizer step, of zero_grad. */
  readonly forwards: readonly number[];
  readonly optimizerSteps: readonly number[];
  readonly ddp: boolean;
  readonly ddpFrame: Frame | null;
  readonly backwardFrame: Frame | null;
  /** Host ranges of `c10d::broadcast_`, ns. */
  readonly broadcastHost: Intervals;
  /** Start instants of each forward, by step index. */
  readonly forwardStarts: readonly (readonly number[])[];
  /** Host ranges in which autograd ran without another operator of the framework between, by step index: one per backward. */
  readonly backwards: readonly (readonly (readonly [start: number, end: number])[])[];
}

/**
 * Why the device was idle. In the order in which a stretch is given away: the first cause that was at work takes it.
 *   gc           the collector of Python ran
 *   compile      an operator was compiled
 *   allocator    device memory was taken or given back
 *   copy         a copy to the device held the host
 *   sync         the host waited for the device, or had to fill the launch queue again after that
 *   loader       the training thread waited for a batch
 *   preparation  the training thread worked on the batch it had fetched
 *   launch       the host was launching, one launch after the other
 *   collective   work was queued and the gap begins or ends with a collective
 *   dependency   work was queued and waited for something else on the device
 *   unexplained  none of these, or the profile does not show what the host did
 */
export const IDLE_CAUSES = [
  'gc',
  'compile',
  'allocator',
  'copy',
  'sync',
  'loader',
  'preparation',
  'launch',
  'collective',
  'dependency',
  'unexplained',
] as const;
export type IdleCause = (typeof IDLE_CAUSES)[number];

/** Upper ends of the classes of gap lengths, ns; longer gaps are in one class more. */
export const GAP_CLASSES = [1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8, 3e8, 1e9] as const;

/** Idle time of the device inside the steps, each ns given to one cause. ns by step index. */
export interface IdleFacts {
  readonly steps: readonly IdleStep[];
  /** ns of all steps by cause (in the order of `IDLE_CAUSES`), then by length of the gap. */
  readonly lengths: readonly (readonly number[])[];
}

export interface IdleStep extends Readonly<Record<IdleCause, number>> {
  readonly step: number;
  readonly total: number;
  /** Stretches of each cause, in the order of `IDLE_CAUSES`. */
  readonly pieces: readonly number[];
  /** Parts of `launch` and `unexplained` between the start of the step and its first kernel. */
  readonly leadLaunch: number;
  readonly leadUnexplained: number;
}

/** What one step spent on something on the host, and how long the device was idle because of it. ns. */
export interface HostCost {
  readonly step: number;
  readonly count: number;
  readonly host: number;
  readonly idle: number;
}

/** A stretch of host time and the idle time of the device that it owns, ns. */
export interface HostSpan {
  readonly step: number;
  readonly start: number;
  readonly end: number;
  readonly idle: number;
}

/** What held up the host, as far as the profile shows it. */
export interface HostFacts {
  /** Places that wait for the device, those with most host time first. */
  readonly syncs: readonly SyncSite[];
  /** Copies to the device that held the host; in order of time, the costliest when there are many. */
  readonly copies: { readonly costs: readonly HostCost[]; readonly calls: readonly CopyCall[] };
  /** Pauses of the collector; null when the profiler did not look for them. */
  readonly gc: { readonly costs: readonly HostCost[]; readonly calls: readonly HostSpan[] } | null;
  /** Calls that take device memory from the driver or give it back; null when no calls of CANN are recorded. */
  readonly allocator: AllocatorFacts | null;
  /** Work of the training thread between a fetch and the first thing it sends to the device, where the profile shows what it did. */
  readonly preparation: readonly (HostSpan & { readonly frame: Frame | null; readonly operators: readonly string[] })[];
  /** Longest stretches of the host without any recorded operator or call in which the device ran dry. */
  readonly quiet: readonly QuietSpan[];
}

/**
 * What made the host wait:
 *   item       a value is read (`.item()`, `bool(tensor)`)
 *   shape      the size of a result depends on values (`nonzero`, boolean masks, `unique`)
 *   to-device  a copy to the device
 *   to-host    a copy from the device
 *   copy       a copy, the direction is not recorded
 *   stream, device, event   asked for by name
 *   release    the allocator gives memory back
 */
export const SYNC_KINDS = ['item', 'shape', 'to-device', 'to-host', 'copy', 'stream', 'device', 'event', 'release'] as const;
export type SyncKind = (typeof SYNC_KINDS)[number];

export interface SyncSite {
  readonly kind: SyncKind;
  /** CANN call, or at Level0 the operator that stands for it. */
  readonly call: string;
  /** Framework operator that made the call; '' when none encloses it. */
  readonly operator: string;
  readonly frame: Frame | null;
  readonly costs: readonly HostCost[];
  /** The wait that cost most, ns. */
  readonly worst: { readonly step: number; readonly start: number; readonly end: number };
  /** Waits right before or after the launch of a collective, and right before a graph is run. */
  readonly besideCollective: number;
  readonly beforeGraph: number;
}

/** Waits of one place over the whole capture, ns. */
export interface WaitTotal {
  readonly kind: SyncKind;
  readonly call: string;
  readonly operator: string;
  readonly frame: Frame | null;
  readonly count: number;
  readonly ns: number;
  /** Device idle inside the waits. */
  readonly idle: number;
  /** Of waits for the whole device: time after the last computing in them in which it only copied or communicated. */
  readonly beside: number;
  /** Waits right before a graph is run. */
  readonly beforeGraph: number;
  /** The wait with most idle time. */
  readonly worst: { readonly start: number; readonly end: number };
}

export interface CopyCall extends HostSpan {
  /** Positions in `tape.syncs`; node of the tape, or -1. */
  readonly syncs: readonly number[];
  readonly node: number;
  /** NaN when not recorded. */
  readonly bytes: number;
  /** The runtime waits after an asynchronous copy only when the host memory is not pinned. null: a blocking copy, from whatever memory. */
  readonly pageable: true | null;
  readonly frame: Frame | null;
}

export interface AllocatorFacts {
  readonly costs: readonly HostCost[];
  readonly calls: readonly HostSpan[];
  readonly names: readonly { readonly name: string; readonly count: number; readonly ns: number }[];
  /** Times the whole cache was given back, which waits for the device first, and where. */
  readonly releases: readonly HostCost[];
  readonly releaseFrame: Frame | null;
}

export interface QuietSpan extends HostSpan {
  /** Operator that ended last before, and first after it, on any thread; '' when there is none. */
  readonly before: string;
  readonly after: string;
  /** Long Python function inside it, if one fills most of it. */
  readonly frame: Frame | null;
}

/** Forward calls of modules of one class in the captured steps. Modules lie inside each other: never add them up. */
export interface ModuleTotal {
  readonly name: string;
  readonly calls: number;
  /** Compute kernels launched inside, and their device time. */
  readonly kernels: number;
  readonly ns: number;
}

export interface TypeTotal {
  readonly type: string;
  readonly core: string;
  readonly count: number;
  readonly ns: number;
}

/** Memory of one device as its allocators saw it. Bytes; NaN when missing. */
export interface MemoryFacts {
  /** torch_npu's caching allocator, at most 512 points. */
  readonly curve: MemorySeries['curve'];
  /** One entry per captured step. Empty without step marks. */
  readonly steps: readonly MemoryStep[];
  readonly components: readonly {
    readonly component: string;
    readonly peakAllocated: number;
    readonly peakAllocatedAt: number;
    readonly peakReserved: number;
    readonly peakReservedAt: number;
    readonly peakActive: number;
  }[];
  /** The times when memory was taken from the device although enough of the allocator's own was unused; most unused first. */
  readonly growths: readonly MemoryGrowth[];
  readonly blocks: readonly MemoryBlock[];
  readonly peakBlock: MemoryBlock | null;
  /** Blocks of an operator that were not released before the capture ended, by step of their allocation. */
  readonly held: readonly {
    readonly name: string;
    readonly bytes: readonly number[];
    readonly count: readonly number[];
    readonly frame: Frame | null;
  }[];
  readonly modules: readonly { readonly name: string; readonly peak: number }[];
}

export interface MemoryStep {
  /** Least and most allocated. */
  readonly floor: number;
  readonly peak: number;
  readonly reservedFloor: number;
  readonly reservedPeak: number;
  /** How often the allocator took memory from the device, gave some back, and took some although enough was unused. */
  readonly grows: number;
  readonly shrinks: number;
  readonly splintered: number;
  /** Host time inside the driver's allocation calls, ns; NaN when CANN calls were not captured. */
  readonly allocatorNs: number;
}
