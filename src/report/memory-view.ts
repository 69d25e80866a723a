import { deviceMemory, memoryPeaks } from '../facts/job/device-memory.ts';
import type { JobFacts } from '../facts/job/index.ts';

/** Ranks whose curve is drawn; those with the highest peak. */
const DRAWN = 8;
/** Ranks whose figures are listed. */
const LISTED = 64;
const BLOCKS = 16;

const ms = (ns: number): number | null => (Number.isFinite(ns) ? Math.round(ns / 1000) / 1000 : null);
const bytes = (value: number): number | null => (Number.isFinite(value) ? Math.round(value) : null);
const list = (column: Float64Array): (number | null)[] => Array.from(column, bytes);

/** Memory of the cards for pictures: curves in ms of the rank's clock and bytes, extremes of each step, the largest blocks with their lives. */
export function memoryView(job: JobFacts): object[] {
  const known = job.ranks.flatMap((rank, i) => (rank.memory === null ? [] : [{ rank, i, memory: rank.memory, peaks: memoryPeaks(rank) }]));
  const byPeak = [...known].sort((a, b) => (b.peaks?.used ?? 0) - (a.peaks?.used ?? 0) || a.i - b.i);
  const drawn = new Set(byPeak.slice(0, DRAWN).map((k) => k.i));
  return byPeak.slice(0, LISTED).map(({ rank, i, memory, peaks }) => ({
    rank: rank.rank,
    deviceBytes: deviceMemory(rank)?.bytes ?? null,
    peaks:
      peaks === null
        ? null
        : { allocated: bytes(peaks.allocated), reserved: bytes(peaks.reserved), used: bytes(peaks.used), unused: bytes(peaks.unused) },
    components: memory.components.map((c) => ({
      component: c.component,
      peakAllocated: bytes(c.peakAllocated),
      peakReserved: bytes(c.peakReserved),
      atMs: ms(c.peakReservedAt),
    })),
    modules: memory.modules.slice(0, 8),
    steps: memory.steps.map((s, k) => ({
      step: rank.steps[k]?.id ?? null,
      floor: bytes(s.floor),
      peak: bytes(s.peak),
      reserved: bytes(s.reservedPeak),
      grows: s.grows,
      shrinks: s.shrinks,
    })),
    peakAt: {
      ms: ms(memory.components.find((c) => c.component === 'PTA')?.peakAllocatedAt ?? Number.NaN),
      operator: memory.peakBlock?.name ?? null,
    },
    blocks: memory.blocks
      .slice(0, BLOCKS)
      .map((b) => ({ operator: b.name, bytes: bytes(b.bytes), startMs: ms(b.start), endMs: ms(b.end) })),
    curve: drawn.has(i)
      ? {
          startMs: Array.from(memory.curve.start, ms),
          allocatedMin: list(memory.curve.allocatedMin),
          allocatedMax: list(memory.curve.allocatedMax),
          reserved: list(memory.curve.reserved),
          active: list(memory.curve.active),
        }
      : null,
  }));
}
