import { groupOf } from '../facts/job/groups.ts';
import type { JobFacts } from '../facts/job/index.ts';
import { kindOf, lineOf, stepCount, type Transfer, transfers } from '../facts/job/transfers.ts';

/** Points of the picture; of more every n-th in order of size. */
const POINTS = 1000;
const KINDS = 12;
const GROUPS = 12;

export interface TransfersView {
  /** Collectives of the used steps whose size is known, and which part of them is drawn. */
  readonly of: number;
  /** Collectives of which members are missing here, or whose clocks cannot be compared: their time may hold waiting for somebody. */
  readonly mayWait: number;
  readonly kinds: readonly {
    readonly op: string;
    readonly members: number;
    readonly betweenServers: boolean;
    readonly calls: number;
    /** Sum, all used steps. */
    readonly bytes: number;
    readonly ms: number;
    /** time ≈ startUpMs + bytes · msPerByte; null when the calls are too few or too alike. */
    readonly line: { readonly startUpMs: number; readonly msPerByte: number; readonly kneeBytes: number | null } | null;
    /** [bytes, ms] */
    readonly points: readonly (readonly [bytes: number, ms: number])[];
  }[];
  /** Per step: moving data without waiting for anybody, by whether computing covers it; `unknownMs` has no timeline beside it. */
  readonly groups: readonly {
    readonly group: string;
    readonly name: string | null;
    readonly calls: number;
    readonly exposedMs: number;
    readonly overlappedMs: number;
    readonly unknownMs: number;
  }[];
}

const round = (value: number): number => Math.round(value * 1000) / 1000;

/** How long collectives take by their size, and how much of that computing covers. null: none was captured. */
export function transfersView(job: JobFacts): TransfersView | null {
  const all = transfers(job);
  if (all.length === 0) return null;
  const sized = all.filter((t) => t.bytes > 0 && t.bodyMs > 0);
  const every = Math.max(1, Math.ceil(sized.length / POINTS));
  const kinds = [...Map.groupBy(sized, kindOf).values()].sort((a, b) => sum(b) - sum(a)).slice(0, KINDS);
  const steps = stepCount(job);
  return {
    of: sized.length,
    mayWait: all.filter((t) => !t.whole && t.size > 1).length,
    kinds: kinds.map((calls) => {
      const [first] = calls as [Transfer, ...Transfer[]];
      const line = lineOf(calls, all);
      return {
        op: first.op,
        members: first.size,
        betweenServers: first.betweenServers,
        calls: calls.length,
        bytes: Math.round(calls.reduce((n, t) => n + t.bytes, 0)),
        ms: round(sum(calls)),
        line:
          line === null
            ? null
            : {
                startUpMs: round(line.startUpMs),
                msPerByte: line.msPerByte,
                kneeBytes: Number.isFinite(line.kneeBytes) ? Math.round(line.kneeBytes) : null,
              },
        points: [...calls]
          .sort((a, b) => a.bytes - b.bytes || a.bodyMs - b.bodyMs)
          .filter((_, i) => i % every === 0)
          .map((t) => [Math.round(t.bytes), round(t.bodyMs)] as const),
      };
    }),
    groups: [...Map.groupBy(all, (t) => t.group)]
      .sort(([, a], [, b]) => sum(b) - sum(a))
      .slice(0, GROUPS)
      .map(([group, calls]) => {
        const told = calls.filter((t) => !Number.isNaN(t.overlap));
        return {
          group,
          name: groupOf(job, group).name,
          calls: calls.length,
          exposedMs: round(told.reduce((n, t) => n + t.bodyMs * (1 - t.overlap), 0) / steps),
          overlappedMs: round(told.reduce((n, t) => n + t.bodyMs * t.overlap, 0) / steps),
          unknownMs: round((sum(calls) - sum(told)) / steps),
        };
      }),
  };
}

const sum = (calls: readonly Transfer[]): number => calls.reduce((n, t) => n + t.bodyMs, 0);
