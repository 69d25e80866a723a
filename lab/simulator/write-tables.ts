import { type Capture, stepAt, stepTraces } from './capture.ts';
import { type Clock, micros } from './clock.ts';
import { commName, commType } from './communication.ts';
import type { DeviceTask, HostOp, Rank, Thread } from './des.ts';
import type { Kernel } from './kernels.ts';
import { launches, plainCalls } from './launches.ts';
import { jitter } from './random.ts';
import type { ResolvedSpec } from './spec.ts';
import { callStack } from './stacks.ts';
import { csv } from './text.ts';

/** Everything the tables of one rank are made of. */
export interface TableInput {
  spec: ResolvedSpec;
  capture: Capture;
  record: Rank;
  clock: Clock;
}

type Row = (string | number)[];

const NONE = '4294967295';
const PIPE_COLUMNS =
  'aicore_time(us),aic_total_cycles,aic_mac_time(us),aic_mac_ratio,aic_scalar_time(us),aic_scalar_ratio,aic_mte1_time(us),aic_mte1_ratio,aic_mte2_time(us),aic_mte2_ratio,aic_fixpipe_time(us),aic_fixpipe_ratio,aic_icache_miss_rate,aiv_time(us),aiv_total_cycles,aiv_vec_time(us),aiv_vec_ratio,aiv_scalar_time(us),aiv_scalar_ratio,aiv_mte2_time(us),aiv_mte2_ratio,aiv_mte3_time(us),aiv_mte3_ratio,aiv_icache_miss_rate,cube_utilization(%)';
const PIPE_COUNT = PIPE_COLUMNS.split(',').length;
const CYCLES_PER_US = 1800;

const round3 = (value: number): number => Math.round(value * 1000) / 1000;

/** A column that only newer releases write, before the rest. */
const device = (input: TableInput, value: string | number = input.capture.device): Row => (input.spec.era === '2025-11' ? [value] : []);
const deviceHeader = (input: TableInput): string => (input.spec.era === '2025-11' ? 'Device_id,' : '');

/** kernel_details.csv: one row per kernel or collective in start order. */
export function kernelDetails(input: TableInput): Iterable<string> {
  const header =
    input.spec.level === 0
      ? 'Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim'
      : `Step Id,${deviceHeader(input)}Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID,${PIPE_COLUMNS}`;
  return csv(header, kernelRows(input), '\r\n');
}

function* kernelRows(input: TableInput): Generator<Row> {
  const { capture, spec } = input;
  const commCore = spec.era === '2025-01' ? 'HCCL' : 'COMMUNICATION';
  let previousEnd = -1;
  let taskId = 11_000;
  for (const task of capture.tasks) {
    taskId++;
    if (task.kind === 'copy') continue;
    const step = stepAt(capture.windows, task.start, true)?.number ?? '';
    const wait = previousEnd < 0 ? 0 : micros(Math.max(0, task.start - previousEnd));
    previousEnd = Math.max(previousEnd, task.end);
    const duration = micros(task.end - task.start);
    const padded = spec.era === '2025-11';
    const times: Row = [
      `${input.clock.stamp(task.start)}\t`,
      padded ? duration.toFixed(3) : duration,
      padded && wait > 0 ? wait.toFixed(6) : wait,
    ];
    const kernel = task.kernel;
    if (spec.level === 0) {
      yield [step, kernel ? kernel.name : commName(task), 'N/A', kernel ? 'N/A' : commCore, ...times, 0];
    } else if (kernel) {
      yield [
        step,
        ...device(input),
        NONE,
        taskId,
        task.stream,
        kernel.name,
        kernel.type,
        'dynamic',
        kernel.core,
        ...times,
        ...kernelColumns(kernel, task),
      ];
    } else {
      const missing: Row = Array.from({ length: 9 + PIPE_COUNT }, () => 'N/A');
      yield [step, ...device(input), NONE, 'N/A', 'N/A', commName(task), commType(task), 'N/A', commCore, ...times, 0, ...missing];
    }
  }
}

function kernelColumns(kernel: Kernel, task: DeviceTask): Row {
  const quoted = (shapes: string): string => `"${shapes}"`;
  const mix = kernel.core === 'MIX_AIC' ? 48 : 0;
  const shapes: Row = [
    quoted(kernel.inShapes),
    kernel.inTypes,
    kernel.inFormats,
    quoted(kernel.outShapes),
    kernel.outTypes,
    kernel.outFormats,
  ];
  return [kernel.blockDim, mix, kernel.core === 'AI_CORE' ? 'YES' : 'NO', ...shapes, 'N/A', ...pipes(kernel, task)];
}

/** Shares of time in which each pipe was busy, as PipeUtilization counts them: mac, scalar, mte1, mte2, fixpipe; vec, scalar, mte2, mte3. */
export function pipeShares(kernel: Kernel, task: DeviceTask): { aic: number[] | null; aiv: number[] | null } {
  const us = micros(task.duration);
  const cube = kernel.core === 'AI_CORE' || kernel.core === 'MIX_AIC';
  const vector = kernel.core !== 'AI_CORE' && kernel.core !== 'AI_CPU';
  const vary = (ratio: number, i: number): number => round3(ratio * jitter(0.01, task.start, task.rank, i));
  const moves = ['TransData', 'Transpose', 'TensorMove', 'ConcatD', 'GatherV2'].includes(kernel.type);
  const aic = kernel.pipes?.aic ?? (kernel.core === 'MIX_AIC' ? [0.55, 0.18, 0.4, 0.35, 0.12] : [0.82, 0.09, 0.5, 0.46, 0.11]);
  const aiv = kernel.pipes?.aiv ?? (moves ? [0.05, 0.1, 0.5, 0.62] : us < 12 ? [0.1, 0.3, 0.25, 0.18] : [0.38, 0.07, 0.74, 0.52]);
  return { aic: cube ? aic.map(vary) : null, aiv: vector ? aiv.map(vary) : null };
}

/** PipeUtilization metrics that suit the kind of kernel. */
function pipes(kernel: Kernel, task: DeviceTask): Row {
  if (kernel.core === 'AI_CPU') return Array.from({ length: PIPE_COUNT }, () => 'N/A');
  const us = micros(task.duration);
  const part = (shares: number[] | null, count: number, miss: number, cores: number): Row => {
    if (shares === null) return [0, 0, ...Array.from({ length: 2 * count }, () => 0), 0];
    const time = Math.max(0.5, us - 2.1);
    return [round3(time), Math.round(time * CYCLES_PER_US * cores), ...shares.flatMap((share) => [round3(time * share), share]), miss];
  };
  const { aic, aiv } = pipeShares(kernel, task);
  return [
    ...part(aic, 5, 0.002, kernel.blockDim),
    ...part(aiv, 4, 0.012, kernel.blockDim),
    aic === null ? 0 : round3(86 * jitter(0.01, task.start, 3)),
  ];
}

/** step_trace_time.csv: one row per captured step. */
export function stepTraceTime(input: TableInput): Iterable<string> {
  const header = `${deviceHeader(input)}Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Communication(Not Overlapped and Exclude Receive),Preparing`;
  const quarter = (ns: number): number => Math.round(ns / 250) / 4;
  const rows = stepTraces(input.capture).map((step) => [
    ...device(input),
    step.step,
    micros(step.computing),
    micros(step.notOverlapped),
    micros(step.overlapped),
    micros(step.communication),
    micros(step.free),
    quarter(step.stage),
    step.bubble,
    micros(Math.max(0, step.notOverlapped - step.bubble)),
    quarter(step.preparing),
  ]);
  return csv(header, rows, '\r\n');
}

/** op_statistic.csv: device time by operator type over the whole capture. */
export function opStatistic(input: TableInput): Iterable<string> {
  const groups = new Map<string, { kernel: Kernel; times: number[] }>();
  for (const task of input.capture.tasks) {
    if (!task.kernel) continue;
    const key = `${task.kernel.type} ${task.kernel.core}`;
    const entry = groups.get(key) ?? { kernel: task.kernel, times: [] };
    entry.times.push(task.duration);
    groups.set(key, entry);
  }
  const sum = (times: number[]): number => times.reduce((total, time) => total + time, 0);
  const all = sum([...groups.values()].map(({ times }) => sum(times)));
  const rows = [...groups.values()]
    .sort((a, b) => sum(b.times) - sum(a.times))
    .map(({ kernel, times }): Row => {
      const total = sum(times);
      const [least, most] = extremes(times);
      const stats = [total, least, total / times.length, most].map((ns) => round3(micros(ns)));
      return [...device(input), kernel.type, kernel.core, times.length, ...stats, round3((100 * total) / all)];
    });
  return csv(`${deviceHeader(input)}OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)`, rows, '\n');
}

/** Least and greatest of a list, safe for long ones. */
function extremes(values: number[]): [number, number] {
  let least = Number.POSITIVE_INFINITY;
  let most = 0;
  for (const value of values) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return [least, most];
}

/** api_statistic.csv: CANN calls over the whole capture. */
export function apiStatistic(input: TableInput): Iterable<string> {
  const { capture, spec, record } = input;
  const groups = new Map<string, { level: string; id: string; times: number[] }>();
  const add = (level: string, id: string, ns: number): void => {
    const key = `${level},${id}`;
    const entry = groups.get(key) ?? { level, id, times: [] };
    entry.times.push(micros(ns));
    groups.set(key, entry);
  };
  const levelName = (level: string): string => (level === 'hccl' && spec.era === '2025-11' ? 'communication' : level);
  const each = (call: { level: string; id: string; start: number; end: number }): void =>
    add(levelName(call.level), call.level === 'node' ? 'launch' : call.id, call.end - call.start);
  for (const call of plainCalls(capture, record.apis, spec.level)) each(call);
  for (const launch of launches(capture, spec.level)) for (const call of launch.calls) each(call);
  const rows = [...groups.values()]
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ level, id, times }): Row => {
      const total = times.reduce((sum, time) => sum + time, 0);
      const mean = total / times.length;
      const [least, most] = extremes(times);
      const variance = times.reduce((sum, time) => sum + (time - mean) ** 2, 0) / times.length;
      return [...device(input, 'host'), level, id, round3(total), times.length, ...[mean, least, most, variance].map(round3)];
    });
  return csv(`${deviceHeader(input)}Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance`, rows, '\n');
}

/** operator_details.csv: one row per host operator call. */
export function operatorDetails(input: TableInput): Iterable<string> {
  const header =
    'Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),Device Self Duration(us),Device Total Duration(us),Device Self Duration With AICore(us),Device Total Duration With AICore(us)';
  return csv(header, operatorRows(input), '\n');
}

interface Totals {
  children: number;
  device: number;
  core: number;
  selfDevice: number;
  selfCore: number;
}

function operatorTotals(capture: Capture): Map<HostOp, Totals> {
  const totals = new Map<HostOp, Totals>();
  for (const op of capture.ops) totals.set(op, { children: 0, device: 0, core: 0, selfDevice: 0, selfCore: 0 });
  for (const task of capture.tasks) {
    const own = task.op && totals.get(task.op);
    if (!own) continue;
    const ns = task.end - task.start;
    own.selfDevice += ns;
    if (task.kernel) own.selfCore += ns;
  }
  const open: Record<Thread, HostOp[]> = { main: [], grad: [], queue: [] };
  const close = (stack: HostOp[], at: number): void => {
    while (stack.length > 0 && stack.at(-1)!.end <= at) {
      const op = stack.pop()!;
      const own = totals.get(op)!;
      own.device += own.selfDevice;
      own.core += own.selfCore;
      const parent = stack.at(-1);
      if (!parent) continue;
      const outer = totals.get(parent)!;
      outer.children += op.end - op.start;
      outer.device += own.device;
      outer.core += own.core;
    }
  };
  for (const op of capture.ops) {
    close(open[op.thread], op.start);
    open[op.thread].push(op);
  }
  for (const stack of Object.values(open)) close(stack, Number.POSITIVE_INFINITY);
  return totals;
}

function* operatorRows(input: TableInput): Generator<Row> {
  const { capture, spec } = input;
  const totals = operatorTotals(capture);
  for (const op of capture.ops) {
    if (op.name.startsWith('ProfilerStep#')) continue;
    const own = totals.get(op)!;
    const stack = op.stack && spec.withStack ? callStack(spec, op.stack).replaceAll('\r\n', '\n') : '';
    const dims = op.types ? op.dims.split(';').join(';\n') : '';
    const host = [op.end - op.start - own.children, op.end - op.start];
    const deviceTimes = [own.selfDevice, own.device, own.selfCore, own.core];
    yield [op.name, dims, stack, ...[...host, ...deviceTimes].map(micros)];
  }
}
