import type { ContributorDetail } from '../model/comparison.ts';
import type { CollectiveFacts, RankFacts } from '../model/facts.ts';
import type { L10n } from '../model/lang.ts';
import { MAX_DETAILS } from './operators.ts';
import { perStep, type Stand } from './stand.ts';

interface CollectiveTotal {
  readonly op: string;
  readonly group: string | null;
  readonly bytes: number | null;
  calls: number;
  ns: number;
}

/**
 * Exposed communication by what a call is: operation, role of its group, size. Names of calls and ids of groups hold counters and
 * addresses that differ from run to run.
 */
export function collectiveDetails(head: Stand, base: Stand, smallestMs: number): ContributorDetail[] {
  // What one side does not record tells nothing apart.
  const known = { group: knows(head, groupName) && knows(base, groupName), bytes: knows(head, bytesOf) && knows(base, bytesOf) };
  const [now, before] = [collectiveTotals(head, known), collectiveTotals(base, known)];
  const rows = [...new Set([...now.keys(), ...before.keys()])].map((key) => {
    const [h, b] = [now.get(key), before.get(key)];
    return { key, of: (h ?? b)!, h, b, delta: ((h?.ns ?? 0) - (b?.ns ?? 0)) / 1e6 };
  });
  return rows
    .filter((row) => Math.abs(row.delta) >= smallestMs)
    .sort((x, y) => Math.abs(y.delta) - Math.abs(x.delta) || (x.key < y.key ? -1 : 1))
    .slice(0, MAX_DETAILS)
    .map(({ of, h, b, delta }): ContributorDetail => {
      const text = of.bytes === null ? (of.group === null ? ALONE : IN_GROUP) : of.group === null ? SIZED : SIZED_IN_GROUP;
      return {
        by: 'collective',
        what: { text, params: { op: of.op, group: of.group ?? '', bytes: of.bytes ?? 0 } },
        base: (b?.ns ?? 0) / 1e6,
        head: (h?.ns ?? 0) / 1e6,
        delta,
        calls: { base: perStep(b?.calls ?? 0), head: perStep(h?.calls ?? 0) },
      };
    });
}

function knows({ job, ranks }: Stand, value: (rank: RankFacts, call: CollectiveFacts) => unknown): boolean {
  return [...ranks.keys()].some((r) => job.ranks[r]!.collectives.some((call) => value(job.ranks[r]!, call) !== null));
}

function collectiveTotals({ job, ranks, accounts }: Stand, known: { group: boolean; bytes: boolean }): Map<string, CollectiveTotal> {
  const out = new Map<string, CollectiveTotal>();
  for (const [rank, weights] of ranks) {
    const facts = job.ranks[rank]!;
    const weightOf = new Map([...weights].map(([step, weight]) => [facts.steps[step]?.id ?? null, weight] as const));
    facts.collectives.forEach((call, c) => {
      const weight = weightOf.get(call.step) ?? 0;
      if (weight === 0) return;
      const group = known.group ? groupName(facts, call) : null;
      const bytes = known.bytes ? bytesOf(facts, call) : null;
      const key = `${call.op}\n${group ?? ''}\n${bytes ?? ''}`;
      let sum = out.get(key);
      if (sum === undefined) {
        sum = { op: call.op, group, bytes, calls: 0, ns: 0 };
        out.set(key, sum);
      }
      sum.calls += weight;
      sum.ns += weight * accounts.get(rank)!.exposedTransfer(c);
    });
  }
  return out;
}

/** Three digits: sizes of the file are rounded to 0.01 MB. */
function bytesOf(_: RankFacts, call: CollectiveFacts): number | null {
  return Number.isNaN(call.bytes) ? null : Number(call.bytes.toPrecision(3));
}

/** Role of the group as the framework names it, else its size. */
function groupName(rank: RankFacts, call: CollectiveFacts): string | null {
  const group = rank.groups.find((g) => g.hash === call.group);
  if (group !== undefined) return group.role ?? `${group.ranks.length}`;
  const links = rank.links?.ids.get(call.group);
  return links === undefined ? null : `${links.length}`;
}

const ALONE: L10n = { en: '{op:code}', zh: '{op:code}' };
const IN_GROUP: L10n = { en: '{op:code} in group {group:code}', zh: '{op:code}，通信域 {group:code}' };
const SIZED: L10n = { en: '{op:code} of {bytes:bytes}', zh: '{op:code}，{bytes:bytes}' };
const SIZED_IN_GROUP: L10n = {
  en: '{op:code} of {bytes:bytes} in group {group:code}',
  zh: '{op:code}，{bytes:bytes}，通信域 {group:code}',
};
