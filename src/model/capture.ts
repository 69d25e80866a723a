import type { Interner } from '../base/interner.ts';
import type { Message } from './lang.ts';
import type { Input } from './report.ts';

/** One file of the upload and what became of it. */
export interface InputRecord extends Omit<Input, 'note'> {
  readonly note: Message | null;
}

/**
 * What one rank uploaded, as tables, foreign spellings already gone. Lives only while the facts of that rank are computed.
 * Times are ns relative to `originUs` (whole µs since the epoch, exact); durations are ns. Missing numbers are NaN, missing ids -1.
 */
export interface RankCapture {
  /** Folder of this rank inside the upload, or '' for the root. */
  readonly folder: string;
  readonly rank: number | null;
  readonly device: number | null;
  readonly hardware: Hardware | null;
  readonly originUs: number;
  readonly files: CaptureFiles;
  readonly names: Interner;
  readonly settings: CaptureSettings;
  readonly groups: readonly GroupInfo[];
  readonly worldSize: number | null;
  readonly parallel: Readonly<Record<string, number>>;
  readonly stepTrace: readonly StepTraceRow[];
  readonly trace: TraceTables | null;
  readonly kernels: KernelTable | null;
  readonly collectives: readonly CollectiveRecord[];
  readonly links: LinkSummary | null;
  readonly apis: readonly ApiRow[];
  readonly operators: readonly OperatorRow[];
  readonly hostOps: readonly HostOpSummary[];
  readonly memory: MemoryTables | null;
  readonly inputs: readonly InputRecord[];
  readonly notes: readonly Message[];
  /** Files that end too early, each with the place: what came later is unknown, and findings are less certain. */
  readonly damage: readonly Message[];
}

/** Names of the files that tell each kind of figure: those of the text export, or its databases. */
export interface CaptureFiles {
  readonly trace: string;
  readonly kernels: string;
  readonly steps: string;
  readonly collectives: string;
}

export interface CaptureSettings {
  /** Framework that ran the job, as its folders name it; null for output of msprof. */
  readonly framework: 'PyTorch' | 'MindSpore' | null;
  readonly level: 'Level0' | 'Level1' | 'Level2' | 'Level_none' | null;
  readonly aicMetrics: string | null;
  readonly withStack: boolean | null;
  readonly withModules: boolean | null;
  readonly recordShapes: boolean | null;
  readonly profileMemory: boolean | null;
  readonly l2Cache: boolean | null;
  readonly gcThreshold: number | null;
  readonly cpuActivity: boolean | null;
  readonly npuActivity: boolean | null;
  readonly schedule: {
    readonly wait: number;
    readonly warmup: number;
    readonly active: number;
    readonly repeat: number;
    readonly skipFirst: number;
  } | null;
  readonly cann: string | null;
  readonly torchNpu: string | null;
  readonly torch: string | null;
  readonly soc: string | null;
  /** Memory of the device, bytes; null when the capture does not record it. */
  readonly deviceMemory: number | null;
  readonly env: Readonly<Record<string, string>>;
  /** State in which the profiler was stopped before its schedule ended, as its log says; null when no log is here or none says so. */
  readonly stopped: 'WARMUP' | 'RECORD' | 'RECORD_AND_SAVE' | null;
}

export interface GroupInfo {
  /** 64-bit hash of the communicator name, unsigned decimal: what op names carry after `@`. */
  readonly hash: string;
  readonly communicator: string;
  /** Role as the framework names it: default_group, tp, pp, dp, … or null. */
  readonly role: string | null;
  readonly groupRank: number | null;
  readonly ranks: readonly number[];
}

/** One row of step_trace_time.csv, ms. */
export interface StepTraceRow {
  readonly step: number | null;
  readonly computing: number;
  readonly exposed: number;
  readonly overlapped: number;
  readonly communication: number;
  readonly free: number;
  readonly stage: number;
  readonly bubble: number;
  readonly preparing: number | null;
  readonly line: number;
}

/** What a map is asked for; the tables of long captures are no maps. */
export interface Lookup<V> {
  get(key: number): V | undefined;
  readonly size: number;
}

export interface TraceTables {
  readonly steps: readonly { id: number; start: number; duration: number; tid: number }[];
  /** Host operators (cat cpu_op), in file order. */
  readonly host: { name: Int32Array; start: Float64Array; duration: Float64Array; tid: Int32Array; frame: Int32Array };
  /** CANN calls that matter (synchronise, memcpy, compile, launch). */
  readonly cann: { name: Int32Array; start: Float64Array; duration: Float64Array; tid: Int32Array };
  /** Device tasks with a stream. */
  readonly device: {
    name: Int32Array;
    taskType: Int32Array;
    start: Float64Array;
    duration: Float64Array;
    stream: Int32Array;
  };
  readonly collective: {
    name: Int32Array;
    start: Float64Array;
    duration: Float64Array;
    row: Int32Array;
    count: Float64Array;
    dataType: Int32Array;
  };
  /** Host instant that issued a device task (HostToDevice flow): thread id of the device row → start of the task, ns → host instant, ns. */
  readonly launches: Lookup<Lookup<number>>;
  /** Framework-side instant and thread for a device task, keyed by the task's start in ns (async_npu flow). */
  readonly issued: Lookup<{ readonly at: number; readonly tid: number }>;
  /**
   * Task queue: dequeue ranges on the launching thread, at least those with a call of `cann` in them, with the host instant and thread
   * that enqueued each. Ascending by start.
   * What happens on the launching thread belongs to the code that enqueued it.
   */
  readonly queue: readonly {
    readonly start: number;
    readonly end: number;
    readonly tid: number;
    readonly at: number;
    readonly from: number;
  }[];
  /** Long calls of Python functions outside torch; `frame` into `frames` is the function at its first line. In file order. */
  readonly functions: { start: Float64Array; duration: Float64Array; tid: Int32Array; frame: Int32Array };
  /** Forward calls of modules (`nn.Module: …`), in file order. */
  readonly modules: ModuleCalls;
  /** Copies between host and device whose size or direction is known, by start of the task. */
  readonly copies: { start: Float64Array; bytes: Float64Array; direction: Uint8Array };
  /** Overlap Analysis lanes, as written. */
  readonly lanes: { computing: Spans; communication: Spans; exposed: Spans; free: Spans } | null;
  /** First user frame of a call stack, by frame id: `file`, `line`, `func`. */
  readonly frames: readonly Frame[];
  readonly gc: Spans;
  readonly frequency: FrequencyTable | null;
  readonly truncated: boolean;
}

/** `name` into `names`: classes of modules, as `Linear`. */
export interface ModuleCalls {
  readonly start: Float64Array;
  readonly duration: Float64Array;
  readonly tid: Int32Array;
  readonly name: Int32Array;
  readonly names: readonly string[];
}

/** Directions in `TraceTables.copies`. */
export const UNKNOWN_DIRECTION = 0;
export const TO_DEVICE = 1;
export const TO_HOST = 2;

export interface Spans {
  readonly start: Float64Array;
  readonly duration: Float64Array;
}

export interface Frame {
  readonly file: string;
  readonly line: number;
  readonly func: string;
  /** Functions of the frames further in, the one that this line calls first. Absent: it calls no Python, or no stack was kept. */
  readonly calls?: readonly string[];
  /** The whole stack is of installed packages: shown only where the repository turns out to be one of them. */
  readonly isInstalled?: boolean;
  /** Frames of installed packages further in, innermost first: one of them may be the repository's own. */
  readonly installed?: readonly Frame[];
  /** Frames of other files further out: this file may not be the repository's. */
  readonly outer?: readonly Frame[];
}

/** Rows of kernel_details.csv in start order. Ids into `names`; -1 when the column is absent or the cell is N/A. */
export interface KernelTable {
  readonly step: Int32Array;
  readonly name: Int32Array;
  readonly type: Int32Array;
  readonly core: Int32Array;
  readonly start: Float64Array;
  readonly duration: Float64Array;
  readonly inputShapes: Int32Array;
  readonly inputFormats: Int32Array;
  readonly outputShapes: Int32Array;
  readonly outputFormats: Int32Array;
  readonly inputTypes: Int32Array;
  readonly outputTypes: Int32Array;
  readonly isCommunication: Uint8Array;
  readonly line: Int32Array;
  /** Index into `groups`; `NO_GROUP` beyond the groups that are kept, and for communication. */
  readonly group: Uint16Array;
  readonly groups: KernelGroupTable;
  /** True when op types are derived from names (Level0). */
  readonly typesFromNames: boolean;
}

export const NO_GROUP = 65_535;
/** Pipes of an AI core, as the columns of PipeUtilization name them. */
export const PIPES = ['mac', 'vec', 'scalar', 'mte1', 'mte2', 'mte3', 'fixpipe'] as const;
export type Pipe = (typeof PIPES)[number];

/** Kernels that agree in type, core, shapes, data types and formats, with what their counters say together. Parallel columns; ids into `names`. */
export interface KernelGroupTable {
  readonly size: number;
  readonly type: Int32Array;
  readonly core: Int32Array;
  readonly inputShapes: Int32Array;
  readonly inputTypes: Int32Array;
  readonly inputFormats: Int32Array;
  readonly outputShapes: Int32Array;
  readonly outputTypes: Int32Array;
  readonly outputFormats: Int32Array;
  /** Mean number of blocks, by time; NaN when unknown. */
  readonly blocks: Float64Array;
  /** Share of the kernels' time in which the pipe was busy, 0..1, by time; null when nothing of the table says, NaN when nothing of the group does. */
  readonly pipes: Readonly<Record<Pipe, Float64Array | null>>;
  /** Share of the reads that the L2 cache answered, 0..1, by time; NaN when unknown. */
  readonly l2Hit: Float64Array;
}

/** Frequency of the AI cores as it changed, ascending: each value holds until the next. */
export interface FrequencyTable {
  readonly at: Float64Array;
  readonly mhz: Float64Array;
}

/** What the capture records of the device itself; null when it does not. */
export interface Hardware {
  readonly cubeCores: number | null;
  readonly vectorCores: number | null;
  readonly ratedMhz: number | null;
}

/** One operation of communication.json, ms and MB as the file has them. */
export interface CollectiveRecord {
  readonly step: number | null;
  readonly kind: 'collective' | 'p2p';
  /** e.g. hcom_allReduce__586_0_1 */
  readonly name: string;
  readonly group: string;
  /** ns relative to origin; the file's own precision is 0.25 µs. */
  readonly start: number;
  readonly elapsedMs: number;
  readonly transitMs: number;
  readonly waitMs: number;
  readonly synchronizationMs: number;
  readonly idleMs: number;
  readonly sizeMb: number;
  /** What moved inside the server (HCCS, PCIe, SIO) and between servers (RDMA): the links' times summed, ms; NaN when the file does not tell. */
  readonly sdmaMs: number;
  readonly rdmaMs: number;
  readonly rdmaMb: number;
}

/** What the links of one rank carried, in the words of the communication tables. */
export interface LinkSummary {
  /** Distinct rank numbers in link ids, ascending, by group hash. 0, 1, … n−1 are group-local numbers; anything else is global ranks. */
  readonly ids: ReadonlyMap<string, readonly number[]>;
  readonly links: LinkTable;
  readonly packets: readonly PacketRow[];
}

export const TRANSPORTS = ['HCCS', 'PCIE', 'SIO', 'RDMA', 'OTHER'] as const;
export type Transport = (typeof TRANSPORTS)[number];

/**
 * Links of a rank by group and kind of collective, the busiest when there are many. Parallel columns; what a link carried in single
 * calls is a sample of them. Copies inside a card and links that carried nothing are left out.
 */
export interface LinkTable {
  /** Group hash and kind of collective (lower camel case) of each link. */
  readonly group: readonly string[];
  readonly op: readonly string[];
  /** Ends of the link: ranks of the job when `global`, else numbered as `LinkSummary.ids` says. */
  readonly global: boolean;
  readonly source: Int32Array;
  readonly target: Int32Array;
  /** Index into `TRANSPORTS`. */
  readonly transport: Uint8Array;
  /** Over the whole capture: bytes and ms. */
  readonly bytes: Float64Array;
  readonly ms: Float64Array;
  /** Index of the link, name of the call, its bytes and ms on the link. */
  readonly sampleLink: Int32Array;
  readonly sampleCall: readonly string[];
  readonly sampleBytes: Float64Array;
  readonly sampleMs: Float64Array;
}

/** Packets of one size, over the whole capture. */
export interface PacketRow {
  readonly transport: Transport;
  readonly bytes: number;
  readonly count: number;
  readonly ms: number;
}

export interface ApiRow {
  readonly level: string;
  readonly name: string;
  readonly totalUs: number;
  readonly count: number;
}

export interface OperatorRow {
  readonly type: string;
  readonly core: string;
  readonly count: number;
  readonly totalUs: number;
}

/** operator_details.csv, summed by name. */
export interface HostOpSummary {
  readonly name: string;
  readonly count: number;
  readonly hostTotalUs: number;
  readonly frame: Frame | null;
}

/** Memory tables, already bounded: a file of them may have millions of rows. Instants are ns of the rank; sizes bytes, NaN when missing. */
export interface MemoryTables {
  readonly series: readonly MemorySeries[];
  /** Largest blocks first. */
  readonly blocks: readonly MemoryBlock[];
  /** The block whose allocation brought the allocator to its peak. */
  readonly peakBlock: MemoryBlock | null;
  /** Blocks that were allocated inside a step and not released before the capture ended, by operator, largest first. */
  readonly held: readonly HeldBlocks[];
  /** Peak memory of the driver's modules (HCCL, RUNTIME, …). */
  readonly modules: readonly { readonly name: string; readonly peak: number }[];
}

/** One allocator of one device. Columns of steps are parallel to the step marks of the trace. */
export interface MemorySeries {
  /** PTA (torch_npu's caching allocator), GE, WORKSPACE, PTA+GE (their sum), APP (the whole process), DEVICE (all processes). */
  readonly component: string;
  readonly device: number;
  readonly rows: number;
  /** At most 512 points: start, and the extremes from there to the next. */
  readonly curve: {
    readonly start: Float64Array;
    readonly allocatedMin: Float64Array;
    readonly allocatedMax: Float64Array;
    readonly reserved: Float64Array;
    readonly active: Float64Array;
  };
  /** Least and most allocated of each step. */
  readonly floor: Float64Array;
  readonly peak: Float64Array;
  readonly reservedFloor: Float64Array;
  readonly reservedPeak: Float64Array;
  /** Per step: how often memory was taken from the device, given back to it, and taken although enough of it was unused. */
  readonly grows: Int32Array;
  readonly shrinks: Int32Array;
  readonly splintered: Int32Array;
  readonly peakAllocated: number;
  readonly peakAllocatedAt: number;
  readonly peakReserved: number;
  readonly peakReservedAt: number;
  readonly peakActive: number;
  /** The times when memory was taken although enough was unused, most unused first; at most 16. */
  readonly growths: readonly MemoryGrowth[];
}

export interface MemoryGrowth {
  readonly at: number;
  /** Index of the step, or -1. */
  readonly step: number;
  /** The block asked for, what lay unused, and what was taken from the device. */
  readonly needed: number;
  readonly unused: number;
  readonly taken: number;
}

export interface MemoryBlock {
  readonly name: string;
  readonly bytes: number;
  readonly start: number;
  /** NaN when it was not released before the capture ended. */
  readonly end: number;
  /** Index of the step, or -1. */
  readonly step: number;
}

export interface HeldBlocks {
  readonly name: string;
  /** By step of the allocation. */
  readonly bytes: Float64Array;
  readonly count: Int32Array;
  /** Instant of one of them. */
  readonly start: number;
}
