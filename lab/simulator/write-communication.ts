import { type Capture, stepAt } from './capture.ts';
import { type Clock, millis } from './clock.ts';
import { type CommDetail, commDetail, commKey, commName } from './communication.ts';
import type { DeviceTask } from './des.ts';
import { jitter } from './random.ts';
import { dump, type Value } from './text.ts';

type Json = { [key: string]: Value };

const TRANSPORTS = ['RDMA', 'HCCS', 'PCIE', 'SDMA', 'SIO'] as const;
const MB = 1e6;

const ratio = (part: number, other: number): number => (part + other > 0 ? Math.round((part / (part + other)) * 1e4) / 1e4 : 0);
const rate = (bytes: number, ns: number): number => (ns > 0 ? Math.round((bytes / ns) * 1e4) / 1e4 : 0);

interface Op {
  task: DeviceTask;
  detail: CommDetail;
}

/** Collectives of each captured step, p2p and collective apart. */
function bySteps(capture: Capture): Map<string, { p2p: Op[]; collective: Op[] }> {
  const steps = new Map(capture.windows.map((window) => [`step${window.number}`, { p2p: [] as Op[], collective: [] as Op[] }]));
  for (const task of capture.tasks) {
    if (task.kind !== 'collective') continue;
    const window = stepAt(capture.windows, task.start, false);
    const step = window && steps.get(`step${window.number}`);
    if (!step) continue;
    step[task.collective!.op === 'batchSendRecv' ? 'p2p' : 'collective'].push({ task, detail: commDetail(task) });
  }
  return steps;
}

/** communication.json of one rank. */
export function communicationText(capture: Capture, clock: Clock): string {
  const out: Json = {};
  for (const [step, classes] of bySteps(capture)) {
    out[step] = { p2p: classOf(classes.p2p, clock), collective: classOf(classes.collective, clock) };
  }
  return dump(out);
}

function classOf(ops: Op[], clock: Clock): Json {
  const out: Json = {};
  for (const op of ops) {
    const start = { 'Start Timestamp(us)': clock.number(op.task.start) };
    out[commKey(op.task)] = {
      'Communication Time Info': { ...start, ...timeInfo(op.detail) },
      'Communication Bandwidth Info': bandwidthInfo(op.detail, true),
    };
  }
  if (ops.length === 0) return out;
  out['Total Op Info'] = {
    'Communication Time Info': timeInfo(total(ops)),
    'Communication Bandwidth Info': bandwidthInfo(total(ops), false),
  };
  return out;
}

function total(ops: Op[]): CommDetail {
  const sum = (pick: (detail: CommDetail) => number): number => ops.reduce((all, op) => all + pick(op.detail), 0);
  return {
    elapse: sum((detail) => detail.elapse),
    transit: sum((detail) => detail.transit),
    wait: sum((detail) => detail.wait),
    synchronization: sum((detail) => detail.synchronization),
    idle: sum((detail) => detail.idle),
    links: ops.flatMap((op) => op.detail.links),
    local: 0,
  };
}

function timeInfo(detail: CommDetail): Json {
  return {
    'Elapse Time(ms)': millis(detail.elapse),
    'Transit Time(ms)': millis(detail.transit),
    'Wait Time(ms)': millis(detail.wait),
    'Synchronization Time(ms)': millis(detail.synchronization),
    'Idle Time(ms)': millis(detail.idle),
    'Wait Time Ratio': ratio(detail.wait, detail.transit),
    'Synchronization Time Ratio': ratio(detail.synchronization, detail.transit),
  };
}

function bandwidthInfo(detail: CommDetail, single: boolean): Json {
  const out: Json = {};
  for (const transport of TRANSPORTS) {
    const links = detail.links.filter((link) => link.transport === transport || (transport === 'SDMA' && link.transport === 'HCCS'));
    const bytes = links.reduce((sum, link) => sum + link.bytes, 0);
    const ns = links.reduce((sum, link) => sum + link.ns, 0);
    const large = transport === 'RDMA' ? 0.5 * MB : 32 * MB;
    const distribution: Json = {};
    if (transport !== 'SDMA') {
      for (const link of links) {
        const key = String(link.bytes / MB);
        const [count, ms] = (distribution[key] as [number, number] | undefined) ?? [0, 0];
        distribution[key] = [count + 1, ms + millis(link.ns)];
      }
    }
    const largeRatio = links.length > 0 ? links.filter((link) => link.bytes > large).length / links.length : 0;
    const size = { 'Transit Size(MB)': bytes / MB, 'Transit Time(ms)': millis(ns) };
    out[transport] = single
      ? {
          ...size,
          'Bandwidth(GB/s)': rate(bytes, ns),
          'Large Packet Ratio': transport === 'SDMA' ? 0 : largeRatio,
          'Size Distribution': distribution,
        }
      : { 'Transit Time(ms)': millis(ns), 'Transit Size(MB)': bytes / MB, 'Size Distribution': distribution };
  }
  return out;
}

interface Sample {
  name: string;
  transport: string;
  bytes: number;
  ns: number;
}

/** communication_matrix.json of one rank: group-local links, samples ranked by bandwidth. */
export function communicationMatrixText(capture: Capture): string {
  const out: Json = {};
  for (const [step, classes] of bySteps(capture)) out[step] = { p2p: matrixOf(classes.p2p), collective: matrixOf(classes.collective) };
  return dump(out);
}

function matrixOf(ops: Op[]): Json {
  const classes = new Map<string, Map<string, Sample[]>>();
  for (const { task, detail } of ops) {
    const { op, group, bytes, index } = task.collective!;
    const key = `${op.toLowerCase()} ${group.hash}`;
    const links = classes.get(key) ?? new Map<string, Sample[]>();
    classes.set(key, links);
    const add = (peer: number, transport: string, size: number, ns: number): void => {
      const link = `${detail.local}-${peer}`;
      links.set(link, [...(links.get(link) ?? []), { name: commName(task), transport, bytes: size, ns }]);
    };
    add(detail.local, 'LOCAL', bytes, Math.round((bytes / 420) * jitter(0.02, index, task.rank, 43)));
    for (const link of detail.links) add(link.peer, link.transport, link.bytes, link.ns);
  }
  const out: Json = {};
  for (const [key, links] of classes) {
    const [op, hash] = key.split(' ') as [string, string];
    for (const [label, pick] of PICKS) {
      const entries: Json = {};
      for (const [link, samples] of links) {
        const sorted = [...samples].sort((a, b) => b.bytes / b.ns - a.bytes / a.ns);
        const sample = pick(sorted);
        if (sample) entries[link] = entry(sample);
      }
      if (Object.keys(entries).length > 0) out[`${op}-${label}@${hash}`] = entries;
    }
  }
  return out;
}

const PICKS: [string, (sorted: Sample[]) => Sample | undefined][] = [
  ['top1', (sorted) => sorted[0]],
  ['middle', (sorted) => sorted[sorted.length >> 1]],
  ['bottom1', (sorted) => sorted.at(-1)],
  ['total', sumOf],
  ['bottom2', (sorted) => (sorted.length > 1 ? sorted.at(-2) : undefined)],
  ['bottom3', (sorted) => (sorted.length > 2 ? sorted.at(-3) : undefined)],
];

function sumOf(samples: Sample[]): Sample {
  const sum = { name: '', transport: samples[0]!.transport, bytes: 0, ns: 0 };
  for (const sample of samples) {
    sum.bytes += sample.bytes;
    sum.ns += sample.ns;
  }
  return sum;
}

function entry(sample: Sample): Json {
  const link = {
    'Transport Type': sample.transport,
    'Transit Size(MB)': sample.bytes / MB,
    'Transit Time(ms)': millis(sample.ns),
    'Bandwidth(GB/s)': rate(sample.bytes, sample.ns),
  };
  return sample.name ? { ...link, 'Op Name': sample.name } : link;
}
