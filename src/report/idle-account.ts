import type { JobFacts } from '../facts/job/index.ts';
import { GAP_CLASSES, IDLE_CAUSES, type IdleCause } from '../model/facts.ts';
import type { Finding } from '../model/report.ts';

/** Rows of the account that fit into a report; of a thousand ranks the pace-setting one and the first keep theirs, each step as a whole. */
const MAX_ROWS = 20_000;

/** Rule that reports the cause of idle time when it is worth a finding. */
const RULE_OF: Partial<Record<IdleCause, readonly string[]>> = {
  gc: ['gc-pause'],
  compile: ['op-recompile'],
  allocator: ['memory-alloc-stall'],
  copy: ['h2d-copy'],
  sync: ['stream-sync'],
  loader: ['dataloader-stall'],
  preparation: ['batch-preparation'],
  launch: ['small-op-fragmentation', 'host-bound-launch'],
  unexplained: ['step-start-gap'],
};

export interface IdleRow {
  readonly rank: number | null;
  readonly step: number | null;
  readonly cause: IdleCause;
  readonly ms: number;
  readonly gaps: number;
  readonly findingId: string | null;
}

/** Who owns each idle millisecond: one row per rank, step and cause. The rows of a rank and step add up to its idle time. */
export function idleAccount(job: JobFacts, findings: readonly Finding[]): IdleRow[] {
  const order = job.ranks.map((_, i) => i).sort((a, b) => Number(b === job.steps.pace) - Number(a === job.steps.pace) || a - b);
  const rows: IdleRow[] = [];
  for (const r of order) {
    const { rank, steps, idle } = job.ranks[r]!;
    for (const account of idle?.steps ?? []) {
      if (rows.length + IDLE_CAUSES.length > MAX_ROWS) return rows;
      const us = apportion(IDLE_CAUSES.map((cause) => account[cause]));
      IDLE_CAUSES.forEach((cause, c) => {
        if (us[c] === 0) return;
        const finding = findings.find(
          (f) => (RULE_OF[cause] ?? []).includes(f.rule) && (rank === null || f.ranks.length === 0 || f.ranks.includes(rank)),
        );
        rows.push({
          rank,
          step: steps[account.step]?.id ?? null,
          cause,
          ms: us[c]! / 1000,
          gaps: account.pieces[c]!,
          findingId: finding?.id ?? null,
        });
      });
    }
  }
  return rows;
}

/** Whole µs whose sum is the rounded sum: what rounding took is given to those that lost most. */
function apportion(ns: readonly number[]): number[] {
  const exact = ns.map((v) => Math.max(0, v) / 1000);
  const whole = exact.map(Math.floor);
  let rest = Math.round(exact.reduce((a, b) => a + b, 0)) - whole.reduce((a, b) => a + b, 0);
  const byLoss = exact.map((_, i) => i).sort((a, b) => exact[b]! - whole[b]! - (exact[a]! - whole[a]!) || a - b);
  for (const i of byLoss) {
    if (rest <= 0) break;
    whole[i] = whole[i]! + 1;
    rest--;
  }
  return whole;
}

/** Idle time of the pace-setting rank over all captured steps by length of the gap, ms. `upToUs` null: longer than the last class. */
export function gapHistogram(job: JobFacts): { rank: number | null; upToUs: number | null; cause: IdleCause; ms: number }[] {
  const facts = job.ranks[job.steps.pace];
  const idle = facts?.idle ?? null;
  if (facts === undefined || idle === null) return [];
  return [...GAP_CLASSES, Number.POSITIVE_INFINITY].flatMap((upTo, at) =>
    IDLE_CAUSES.flatMap((cause, c) => {
      const ms = Math.round(idle.lengths[c]![at]! / 1000) / 1000;
      return ms === 0 ? [] : [{ rank: facts.rank, upToUs: Number.isFinite(upTo) ? upTo / 1000 : null, cause, ms }];
    }),
  );
}
