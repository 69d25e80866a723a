import type { Intervals } from '../base/intervals.ts';
import type {
  ApiRow,
  CaptureFiles,
  CaptureSettings,
  Frame,
  GroupInfo,
  HostOpSummary,
  InputRecord,
  LinkSummary,
  MemoryBlock,
  MemoryGrowth,
  MemorySeries,
  OperatorRow,
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
  readonly phases: PhaseFacts;
  readonly idle: IdleFacts | null;
  readonly operators: readonly TypeTotal[];
  readonly opStatistic: readonly OperatorRow[];
  readonly apis: readonly ApiRow[];
  readonly hostOps: readonly HostOpSummary[];
  readonly memory: MemoryFacts | null;
  readonly inputs: readonly InputRecord[];
  readonly notes: readonly Message[];
}

/** What a profile can answer. A rule that needs one that no rank has is "not applicable". */
export type Capability =
  | 'steps'
  | 'step-times'
  | 'host-ops'
  | 'launches'
  | 'kernels'
  | 'kernel-types'
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
  readonly bytes: number;
  /** Part of [start, end) not covered by computing on this rank. */
  readonly exposed: number;
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
  /** Host calls that waited for the device: [start, end). */
  readonly syncs: { readonly start: Float64Array; readonly end: Float64Array };
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
}

/** Idle time of the device inside the steps, each ns given to one cause. Sums, ns, by step index. */
export interface IdleFacts {
  readonly steps: readonly {
    readonly step: number;
    readonly total: number;
    readonly loader: number;
    readonly compile: number;
    readonly sync: number;
    readonly launch: number;
    readonly preparing: number;
    readonly unexplained: number;
  }[];
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
