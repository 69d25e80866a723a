import { type Intervals, subtract, union, unite } from '../../base/intervals.ts';
import type { HostCost, IdleCause, RankFacts } from '../../model/facts.ts';
import type { Message } from '../../model/lang.ts';
import { compiling } from '../rank/compile.ts';
import { idleByCause, idleIntervals, launchesOf, leadIn, waitsWithRefill } from '../rank/idle.ts';
import type { JobFacts } from './index.ts';
import { hostBias, medianOfUsed, sumByStep } from './per-step.ts';

/** Idle time of each rank that a cause owns, ms, median of the used steps; NaN for ranks without an account. */
export function idleMs(job: JobFacts, cause: IdleCause): number[] {
  return job.ranks.map((r) =>
    r.idle === null
      ? Number.NaN
      : medianOfUsed(
          job,
          r.idle.steps.map((s) => s[cause] / 1e6),
        ),
  );
}

/** One figure of the costs of each rank, median of the used steps; steps without an entry count as nothing. Times in ms. */
export function costOf(job: JobFacts, costs: (rank: RankFacts) => readonly HostCost[], figure: 'count' | 'host' | 'idle'): number[] {
  const unit = figure === 'count' ? 1 : 1e6;
  return job.ranks.map(
    (r) =>
      medianOfUsed(
        job,
        sumByStep(r.steps.length, costs(r), (c) => c[figure] / unit),
      ) || 0,
  );
}

/** The rank to quote: the one that sets the pace if it is among them, else the one with most. */
export function quoted(job: JobFacts, ranks: readonly number[], values: readonly number[]): number {
  return ranks.includes(job.steps.pace) ? job.steps.pace : ranks.reduce((a, b) => (values[b]! > values[a]! ? b : a), ranks[0]!);
}

/** Capture options that make the host look slower than it is. */
export function biasCaveat(rank: RankFacts): Message[] {
  const options = hostBias(rank);
  if (options.length === 0) return [];
  return [
    {
      text: {
        en: 'the capture options {options:code} slow the host, so the real loss is smaller',
        zh: '采集选项 {options:code} 会拖慢 Host，实际损失更小',
      },
      params: { options },
    },
  ];
}

/**
 * Host time in which the card waited for nothing but the next launch, without the start of the steps: what is left of the idle time when
 * every recorded cause has taken its part.
 */
export function launchStretches(rank: RankFacts): Intervals {
  const { tape, host } = rank;
  const windows = rank.steps.filter((s) => s.end > s.start);
  if (tape === null || host === null || windows.length === 0) return union([]);
  const spans = (list: readonly { readonly start: number; readonly end: number }[]): Intervals =>
    union(list.map((s) => [s.start, s.end] as const));
  const launches = launchesOf(tape);
  const kindOf = (sync: number): string => host.syncs[tape.syncs.site[sync]!]?.kind ?? '';
  const shares = idleByCause(tape, idleIntervals(tape, windows), {
    gc: spans(host.gc?.calls ?? []),
    compile: compiling(rank.compile),
    allocator: unite(
      spans(host.allocator?.calls ?? []),
      waitsWithRefill(tape, launches, (i) => kindOf(i) === 'release'),
    ),
    copy: spans(host.copies.calls),
    sync: waitsWithRefill(tape, launches, (i) => !['to-device', 'release'].includes(kindOf(i))),
    loader: spans((rank.loader?.fetches ?? []).filter((f) => f.stall > 0)),
    preparation: spans(host.preparation),
    quiet: spans(host.quiet),
    seesHost: rank.capabilities.has('host-ops'),
  });
  return subtract(shares.launch, leadIn(tape, rank.steps));
}
