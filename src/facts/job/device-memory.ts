import type { RankFacts } from '../../model/facts.ts';

const GIB = 2 ** 30;

/**
 * Memory of a training card by product name, as `npu-smi info` shows it (65,536 MB, 32,768 MB): 910B4 has half of its siblings.
 * The family name of a database export stands for all of them and tells nothing.
 */
const BY_PRODUCT: readonly (readonly [name: RegExp, bytes: number])[] = [
  [/^Ascend910B(1|2|2C|3|4-1)$/, 64 * GIB],
  [/^Ascend910B4$/, 32 * GIB],
  [/^Ascend910_93\d\d$/, 64 * GIB],
  [/^Ascend910A$/, 32 * GIB],
];

export interface DeviceMemory {
  readonly bytes: number;
  /** recorded: the capture says so; product: nominal size of the product. */
  readonly basis: 'recorded' | 'product';
}

/** Memory of the rank's card; null when neither its size nor its product is recorded. */
export function deviceMemory(rank: RankFacts): DeviceMemory | null {
  const recorded = rank.settings.deviceMemory ?? null;
  if (recorded !== null) return { bytes: recorded, basis: 'recorded' };
  const found = BY_PRODUCT.find(([name]) => name.test(rank.settings.soc ?? ''));
  return found === undefined ? null : { bytes: found[1], basis: 'product' };
}

/** Peaks of one rank, bytes. */
export interface MemoryPeaks {
  /** torch_npu's allocator: most allocated (or held for a stream), most reserved, and the difference. */
  readonly allocated: number;
  readonly reserved: number;
  readonly unused: number;
  /** The whole process: the allocator, the graph engine, HCCL, the runtime. */
  readonly used: number;
  /** What is left of that when the allocator kept no memory in reserve. */
  readonly needed: number;
}

export function memoryPeaks(rank: RankFacts): MemoryPeaks | null {
  const of = (name: string) => rank.memory?.components.find((c) => c.component === name);
  const own = of('PTA');
  if (own === undefined || !(own.peakReserved > 0) || !(own.peakAllocated > 0)) return null;
  const allocated = Math.max(own.peakAllocated, own.peakActive || 0);
  const unused = Math.max(0, own.peakReserved - allocated);
  const summed = of('PTA+GE')?.peakReserved ?? own.peakReserved + (of('GE')?.peakReserved || 0);
  const used = Math.max(summed || 0, own.peakReserved, of('APP')?.peakReserved || 0);
  return { allocated, reserved: own.peakReserved, unused, used, needed: used - unused };
}
