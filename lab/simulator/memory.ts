import type { Capture } from './capture.ts';
import type { HostOp } from './des.ts';
import type { MemorySpec } from './spec.ts';

/** A block of the caching allocator; `end` is -1 when it is not released in the capture. ns, bytes. */
export interface Block {
  name: string;
  bytes: number;
  start: number;
  end: number;
  /** totals right after the allocation and the release */
  allocated: number;
  reserved: number;
  releasedAllocated: number;
  releasedReserved: number;
}

/** One row of the allocator: the totals after a change. */
export interface Change {
  at: number;
  allocated: number;
  reserved: number;
}

export interface MemoryTrace {
  blocks: Block[];
  changes: Change[];
  /** the whole process, sampled every 20 ms */
  samples: { at: number; reserved: number }[];
  otherBytes: number;
}

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const SEGMENT = 20 * MIB;
const MOST_BLOCKS = 120;
const SAMPLE_NS = 20_000_000;

const segments = (bytes: number): number => Math.ceil(bytes / SEGMENT) * SEGMENT;

/** The allocator's life in the captured steps of one rank. */
export function memoryOf(capture: Capture, spec: MemorySpec): MemoryTrace {
  const base = (spec.baseGb ?? 9) * GIB;
  const activations = (spec.stepGb ?? 6) * GIB;
  const first = spec.stateInFirstStep === true ? base * 0.4 : base;
  const blocks: Block[] = [];
  const none = { allocated: 0, reserved: 0, releasedAllocated: 0, releasedReserved: 0 };
  const splinters = new Set<Block>();
  for (const [s, window] of capture.windows.entries()) {
    const length = window.hostEnd - window.hostStart;
    const ops = operators(capture, window.hostStart, window.hostEnd);
    const at = (share: number): number => Math.round(window.hostStart + share * length);
    for (const [i, op] of ops.entries()) {
      const release = Math.max(op.start + 2_000, at(0.95 - (0.3 * i) / ops.length));
      blocks.push({ ...none, name: op.name, bytes: Math.round(activations / ops.length), start: op.start + 500, end: release });
    }
    const third = ops[Math.floor(ops.length / 3)]!;
    if (spec.growMb !== undefined) blocks.push({ ...none, name: third.name, bytes: spec.growMb * MIB, start: third.start + 700, end: -1 });
    if (spec.stateInFirstStep === true && s === 0)
      blocks.push({ ...none, name: 'aten::zeros_like', bytes: base - first, start: at(0.97), end: -1 });
    if (spec.splinterMb !== undefined) {
      const op = ops[Math.floor(ops.length / 10)]!;
      const block = { ...none, name: op.name, bytes: spec.splinterMb * MIB, start: op.start + 800, end: at(0.5) };
      splinters.add(block);
      blocks.push(block);
    }
  }
  return play(capture, spec, { blocks, splinters, first, start: segments(first + activations + (spec.unusedGb ?? 0.3) * GIB) });
}

interface Life {
  blocks: Block[];
  splinters: Set<Block>;
  first: number;
  /** reserved when the capture begins */
  start: number;
}

function play(capture: Capture, spec: MemorySpec, life: Life): MemoryTrace {
  const events = life.blocks.flatMap((block) => [
    { at: block.start, block, isRelease: false },
    ...(block.end === -1 ? [] : [{ at: block.end, block, isRelease: true }]),
  ]);
  const flushes = spec.churn === true ? capture.windows.map((window) => window.hostEnd - 20_000) : [];
  events.sort((a, b) => a.at - b.at);
  let allocated = life.first;
  let reserved = life.start;
  const changes: Change[] = [{ at: capture.begin + 1_000, allocated, reserved }];
  const samples: MemoryTrace['samples'] = [];
  const other = (spec.otherGb ?? 0.7) * GIB;
  let sampled = capture.begin;
  let flush = 0;
  for (const { at, block, isRelease } of events) {
    while (flush < flushes.length && flushes[flush]! <= at) {
      reserved = segments(allocated);
      changes.push({ at: flushes[flush++]!, allocated, reserved });
    }
    for (; sampled <= at; sampled += SAMPLE_NS) samples.push({ at: sampled, reserved: reserved + other });
    allocated += isRelease ? -block.bytes : block.bytes;
    if (life.splinters.has(block) && !isRelease) reserved += segments(block.bytes);
    reserved = Math.max(reserved, segments(allocated));
    changes.push({ at, allocated, reserved });
    if (isRelease) {
      block.releasedAllocated = allocated;
      block.releasedReserved = reserved;
    } else {
      block.allocated = allocated;
      block.reserved = reserved;
    }
  }
  return { blocks: life.blocks.sort((a, b) => a.start - b.start), changes, samples, otherBytes: other };
}

/** At most 120 framework operators of the main thread, evenly over the step. */
function operators(capture: Capture, from: number, to: number): HostOp[] {
  const all = capture.ops.filter((op) => op.thread === 'main' && op.name.startsWith('aten::') && op.start >= from && op.start < to);
  const count = Math.min(MOST_BLOCKS, all.length);
  return Array.from({ length: count }, (_, i) => all[Math.floor((i * all.length) / count)]!);
}
