/* Kernel tables written row by row, for what no simulated job has: odd columns, single kernels, other operators. */
import { rankFacts } from '../../src/facts/rank/index.ts';
import type { RankFacts } from '../../src/model/facts.ts';
import { readOnly, ts } from './profile-text.ts';

/** A row of kernel_details.csv; what is left out is N/A. Times in µs. */
export interface KernelRow {
  readonly name?: string;
  readonly type?: string;
  readonly core?: string;
  readonly us: number;
  /** Idle time before it, default 1. */
  readonly gap?: number;
  readonly blocks?: number;
  readonly inShapes?: string;
  readonly inTypes?: string;
  readonly inFormats?: string;
  readonly outShapes?: string;
  readonly outTypes?: string;
  readonly outFormats?: string;
  readonly stream?: number;
  readonly task?: number;
  /** Other columns by their header. */
  readonly more?: Readonly<Record<string, string | number>>;
}

const FIXED = ['Stream ID', 'Task ID', 'Name', 'Type', 'Accelerator Core', 'Start Time(us)', 'Duration(us)', 'Wait Time(us)'] as const;
const SHAPES = ['Input Shapes', 'Input Data Types', 'Input Formats', 'Output Shapes', 'Output Data Types', 'Output Formats'] as const;

export function kernelTable(rows: readonly KernelRow[], blockColumn: 'Block Dim' | 'Block Num' = 'Block Dim'): string {
  const more = [...new Set(rows.flatMap((r) => Object.keys(r.more ?? {})))];
  const lines = [[...FIXED, blockColumn, ...SHAPES, ...more].join(',')];
  let at = 100;
  const quoted = (shapes: string | undefined): string => (shapes === undefined ? 'N/A' : `"""${shapes}"""`);
  rows.forEach((r, i) => {
    at += r.gap ?? 1;
    const cells: (string | number | undefined)[] = [
      r.stream ?? 2,
      r.task ?? i + 1,
      r.name ?? `aclnn${r.type ?? 'X'}_${r.type ?? 'X'}`,
      r.type,
      r.core ?? 'AI_VECTOR_CORE',
      `${ts(at)}\t`,
      r.us,
      1,
      r.blocks ?? 0,
      quoted(r.inShapes),
      r.inTypes,
      r.inFormats ??
        r.inTypes
          ?.split(';')
          .map(() => 'ND')
          .join(';'),
      quoted(r.outShapes),
      r.outTypes,
      r.outFormats ??
        r.outTypes
          ?.split(';')
          .map(() => 'ND')
          .join(';'),
      ...more.map((column) => r.more?.[column]),
    ];
    lines.push(cells.map((c) => (c === undefined ? 'N/A' : String(c))).join(','));
    at += r.us;
  });
  return `${lines.join('\n')}\n`;
}

/** Facts of a rank that uploaded only these files below its output folder. */
export async function factsOfTables(files: Readonly<Record<string, string>>): Promise<RankFacts> {
  const named = Object.entries(files).map(([name, text]) => [`rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/${name}`, text] as const);
  return rankFacts(await readOnly(Object.fromEntries(named)));
}

/** Counters of a cube kernel, and of a vector kernel. */
export const cube = (mac: number, mte2: number, fixpipe = 0): Record<string, number> => ({
  aic_mac_ratio: mac,
  aic_scalar_ratio: 0.1,
  aic_mte1_ratio: mac / 2,
  aic_mte2_ratio: mte2,
  aic_fixpipe_ratio: fixpipe,
  aiv_vec_ratio: 0,
  aiv_mte2_ratio: 0,
  aiv_mte3_ratio: 0,
});
export const vector = (vec: number, mte2: number, mte3: number): Record<string, number> => ({
  aic_mac_ratio: 0,
  aic_mte2_ratio: 0,
  aiv_vec_ratio: vec,
  aiv_scalar_ratio: 0.05,
  aiv_mte2_ratio: mte2,
  aiv_mte3_ratio: mte3,
});

/** Work that makes the span so long that a kernel is a given share of it. */
export const filler = (us: number): KernelRow => ({
  type: 'MatMulV2',
  core: 'AI_CORE',
  us,
  blocks: 24,
  inShapes: '8192,4096;4096,4096',
  inTypes: 'DT_BF16;DT_BF16',
  outShapes: '8192,4096',
  outTypes: 'DT_BF16',
  more: cube(0.86, 0.8),
});
