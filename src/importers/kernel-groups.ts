import { type Column, f64, i32 } from '../base/columns.ts';
import { type KernelGroupTable, NO_GROUP, PIPES, type Pipe } from '../model/capture.ts';

/** A kernel's type, core, shapes, data types and formats as ids: kernels that agree in all of them are one group. */
export type GroupKey = [
  type: number,
  core: number,
  inputShapes: number,
  inputTypes: number,
  inputFormats: number,
  outputShapes: number,
  outputTypes: number,
  outputFormats: number,
];

const KEY = 8;
/** Cube and vector side of a kernel name their pipes alike. */
const SIDES = 2;
const FIGURES = SIDES * PIPES.length;

/** Sums per group of kernels, made while the rows are read: a row of its own for every counter would cost ten times the memory. */
export interface KernelGroups {
  /** Group of a kernel; `NO_GROUP` when there are already as many as are kept. */
  of(key: Readonly<GroupKey>): number;
  blocks(group: number, blocks: number, ns: number): void;
  /** Share of a kernel's time in which a pipe was busy, as one side of it reports. */
  pipe(group: number, figure: number, share: number, ns: number): void;
  /** Share of a kernel's reads that the L2 cache answered. */
  l2Hit(group: number, share: number, ns: number): void;
  table(): KernelGroupTable;
}

/** Stands for a group where the row is communication, while rows are read. */
export const COMMUNICATION = NO_GROUP + 1;

/** Group and kind of the rows, from one column of both: two of them would take twice the memory until all rows are there. */
export function unpackGroups(rows: Int32Array): { group: Uint16Array; isCommunication: Uint8Array } {
  const group = new Uint16Array(rows.length);
  const isCommunication = new Uint8Array(rows.length);
  for (let row = 0; row < rows.length; row++) {
    group[row] = Math.min(rows[row]!, NO_GROUP);
    if (rows[row] === COMMUNICATION) isCommunication[row] = 1;
  }
  return { group, isCommunication };
}

/** A counter's column as one number: which pipe on which side. null for other columns. */
export function pipeFigure(name: string): { readonly figure: number; readonly part: boolean } | null {
  const found = /^(?:(aic|aiv|ai\*|aicore)_)?(mac|vec|scalar|mte1|mte2|mte3|fixpipe)(?:_(fp16|fp32|int8|int32|misc))?_ratio$/i.exec(
    name.trim(),
  );
  if (found === null) return null;
  const pipe = PIPES.indexOf(found[2]!.toLowerCase() as Pipe);
  return { figure: (/^aiv$/i.test(found[1] ?? '') ? PIPES.length : 0) + pipe, part: found[3] !== undefined };
}

/** A weighted mean in the making. */
interface Mean {
  readonly sum: Column<Float64Array>;
  readonly weight: Column<Float64Array>;
}

export function createKernelGroups(limit = NO_GROUP): KernelGroups {
  const keys = i32();
  const mean = (): Mean => ({ sum: f64(16), weight: f64(16) });
  const figures = Array.from({ length: FIGURES }, mean);
  const block = mean();
  const hit = mean();
  let size = 0;
  let capacity = 1 << 10;
  let slots = new Int32Array(capacity).fill(-1);

  const hashOf = (at: (part: number) => number): number => {
    let hash = 0;
    for (let part = 0; part < KEY; part++) hash = Math.imul(hash ^ at(part), 0x9e3779b1) ^ (hash >>> 15);
    return hash ^ (hash >>> 13);
  };
  const grow = (): void => {
    capacity *= 2;
    slots = new Int32Array(capacity).fill(-1);
    for (let group = 0; group < size; group++) {
      let slot = hashOf((part) => keys.at(group * KEY + part)) & (capacity - 1);
      while (slots[slot] !== -1) slot = (slot + 1) & (capacity - 1);
      slots[slot] = group;
    }
  };
  const add = ({ sum, weight }: Mean, group: number, value: number, ns: number): void => {
    if (group === NO_GROUP || !Number.isFinite(value) || value < 0) return;
    while (sum.length <= group) {
      sum.push(0);
      weight.push(0);
    }
    // A kernel of no length still says what it is.
    const own = Math.max(ns, 1);
    sum.set(group, sum.at(group) + value * own);
    weight.set(group, weight.at(group) + own);
  };
  const meanOf = ({ sum, weight }: Mean, group: number): number =>
    group < weight.length && weight.at(group) > 0 ? sum.at(group) / weight.at(group) : Number.NaN;
  const column = (of: Mean): Float64Array => Float64Array.from({ length: size }, (_, group) => meanOf(of, group));

  return {
    of(key) {
      let slot = hashOf((part) => key[part]!) & (capacity - 1);
      for (let group = slots[slot]!; group !== -1; group = slots[slot]!) {
        let part = 0;
        while (part < KEY && keys.at(group * KEY + part) === key[part]) part++;
        if (part === KEY) return group;
        slot = (slot + 1) & (capacity - 1);
      }
      if (size >= limit) return NO_GROUP;
      slots[slot] = size;
      for (const id of key) keys.push(id);
      size++;
      if (size * 2 > capacity) grow();
      return size - 1;
    },
    blocks: (group, blocks, ns) => {
      // 0 stands where the level records none.
      if (blocks > 0) add(block, group, blocks, ns);
    },
    pipe: (group, figure, share, ns) => add(figures[figure]!, group, Math.min(1, share), ns),
    l2Hit: (group, share, ns) => add(hit, group, Math.min(1, share), ns),
    table() {
      const part = (index: number): Int32Array => Int32Array.from({ length: size }, (_, group) => keys.at(group * KEY + index));
      const pipes = PIPES.map((_, pipe) => {
        const sides = Array.from({ length: SIDES }, (_s, side) => figures[side * PIPES.length + pipe]!);
        if (sides.every((side) => side.weight.length === 0)) return null;
        // The busier side: on a kernel that has one only, the other reports nothing or zeros.
        return Float64Array.from({ length: size }, (_g, group) => {
          const known = sides.map((side) => meanOf(side, group)).filter((v) => !Number.isNaN(v));
          return known.length === 0 ? Number.NaN : Math.max(...known);
        });
      });
      return {
        size,
        type: part(0),
        core: part(1),
        inputShapes: part(2),
        inputTypes: part(3),
        inputFormats: part(4),
        outputShapes: part(5),
        outputTypes: part(6),
        outputFormats: part(7),
        blocks: column(block),
        pipes: Object.fromEntries(PIPES.map((pipe, i) => [pipe, pipes[i]])) as KernelGroupTable['pipes'],
        l2Hit: column(hit),
      };
    },
  };
}
