import { withoutHome } from '../base/home-folder.ts';
import type { JobFacts } from '../facts/job/index.ts';
import { medianOfUsed, sumByStep } from '../facts/job/per-step.ts';
import { boundness, isMeasured, LONG_KERNEL } from '../facts/job/pipes.ts';
import { PIPES, type Pipe } from '../model/capture.ts';
import type { KernelGroup } from '../model/facts.ts';

const GROUPS = 25;
const SHAPES = 160;

export interface KernelsView {
  readonly rank: number | null;
  /** Compute kernels of the captured steps that agree in type, core, shapes, data types and formats; most time first. */
  readonly groups: readonly {
    readonly type: string;
    readonly core: string;
    readonly shapes: string;
    readonly dataTypes: string;
    readonly count: number;
    readonly ms: number;
    readonly meanUs: number;
    /** Share of the kernels' time in which each pipe was busy, 0..1; null: not measured. */
    readonly pipes: Readonly<Record<Pipe, number>> | null;
    /** The pipe that limits them; null when none is near its limit or the kernels are too short to tell. */
    readonly boundBy: Pipe | null;
    /** Share of the reads that the L2 cache answered; null: not measured. */
    readonly l2Hit: number | null;
    readonly place: { readonly file: string; readonly line: number } | null;
  }[];
  /** What the groups above leave out. */
  readonly other: { readonly count: number; readonly ms: number };
  /** Kernel time by kind of core, all captured steps. */
  readonly cores: readonly { readonly core: string; readonly ms: number }[];
  /** Per step, median of the used steps; `ofMs` is the computing they are part of. null: not told apart. */
  readonly layout: { readonly ms: number; readonly removableMs: number; readonly count: number; readonly ofMs: number } | null;
  readonly casts: { readonly ms: number; readonly removableMs: number; readonly count: number } | null;
}

const round = (value: number): number => Math.round(value * 1000) / 1000;
const share = (value: number): number | null => (Number.isNaN(value) ? null : round(value));

/** How the kernels of the pace-setting rank use the hardware. null: no kernel table, so nothing but types and times is known. */
export function kernelsView(job: JobFacts): KernelsView | null {
  const rank = job.ranks[job.steps.pace];
  const kernels = rank?.kernels ?? null;
  if (rank === undefined || kernels === null || kernels.groups.length === 0) return null;
  const shown = kernels.groups.slice(0, GROUPS);
  const rest = kernels.groups.slice(GROUPS);
  const cores = new Map<string, number>();
  for (const group of kernels.groups) cores.set(group.core, (cores.get(group.core) ?? 0) + group.ns);
  const perStep = <T extends { readonly step: number }>(list: readonly T[], of: (item: T) => number): number =>
    medianOfUsed(job, sumByStep(rank.steps.length, list, of));
  const isPerStep = job.steps.usedIndex.some((s) => s < rank.steps.length);
  return {
    rank: rank.rank,
    groups: shown.map(groupOf),
    other: {
      count: kernels.other.count + rest.reduce((n, g) => n + g.count, 0),
      ms: round((kernels.other.ns + rest.reduce((n, g) => n + g.ns, 0)) / 1e6),
    },
    cores: [...cores].sort(([, a], [, b]) => b - a).map(([core, ns]) => ({ core, ms: round(ns / 1e6) })),
    layout:
      rank.layout === null || !isPerStep
        ? null
        : {
            ms: round(perStep(rank.layout.steps, (s) => s.ns / 1e6)),
            removableMs: round(perStep(rank.layout.steps, (s) => s.removableNs / 1e6)),
            count: perStep(rank.layout.steps, (s) => s.count),
            ofMs: round(perStep(rank.layout.steps, (s) => s.computeNs / 1e6)),
          },
    casts:
      rank.casts === null || !isPerStep
        ? null
        : {
            ms: round(perStep(rank.casts.steps, (s) => s.ns / 1e6)),
            removableMs: round(perStep(rank.casts.steps, (s) => (s.removableNs + s.repeatedNs) / 1e6)),
            count: perStep(rank.casts.steps, (s) => s.count),
          },
  };
}

function groupOf(group: KernelGroup): KernelsView['groups'][number] {
  const bound = group.ns / group.count >= LONG_KERNEL ? boundness(group) : null;
  return {
    type: group.type,
    core: group.core,
    shapes: group.inputShapes.slice(0, SHAPES),
    dataTypes: group.inputTypes.slice(0, SHAPES),
    count: group.count,
    ms: round(group.ns / 1e6),
    meanUs: round(group.ns / group.count / 1e3),
    pipes: isMeasured(group) ? (Object.fromEntries(PIPES.map((p) => [p, round(group.pipes[p] || 0)])) as Record<Pipe, number>) : null,
    boundBy: bound !== null && bound.of >= 1 ? bound.pipe : null,
    l2Hit: share(group.l2Hit),
    place: group.frame === null ? null : { file: withoutHome(group.frame.file), line: group.frame.line },
  };
}
