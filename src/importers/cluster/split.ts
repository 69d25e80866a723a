import { z } from 'zod';
import type { GroupInfo } from '../../model/capture.ts';
import { groupHash } from '../group-hash.ts';

const Loose = z.record(z.string(), z.unknown());
const object = (value: unknown): Record<string, unknown> => {
  const parsed = Loose.safeParse(value);
  return parsed.success ? parsed.data : {};
};

const P2P = /^hcom_(send|receive|batchsendrecv)/i;
const MAX_RANKS = 200_000;
const MAX_GROUPS = 10_000;

type Steps = Record<string, { collective: Record<string, unknown>; p2p: Record<string, unknown> }>;

/**
 * cluster_communication.json, turned around: rank → what its own communication.json would hold. The first level is either
 * `p2p`/`collective` or the set of ranks, by version; below it step, operation, rank.
 */
export function byRank(json: unknown): Map<number, Steps> {
  const out = new Map<number, Steps>();
  for (const [first, steps] of Object.entries(object(json))) {
    for (const [step, ops] of Object.entries(object(steps))) {
      for (const [op, ranks] of Object.entries(object(ops))) {
        if (op.startsWith('Total')) continue;
        const kind = first === 'p2p' || (first !== 'collective' && P2P.test(op)) ? 'p2p' : 'collective';
        for (const [rank, info] of Object.entries(object(ranks))) {
          if (!/^\d{1,7}$/.test(rank) || (out.size >= MAX_RANKS && !out.has(Number(rank)))) continue;
          const own: Steps = out.get(Number(rank)) ?? Object.create(null);
          out.set(Number(rank), own);
          const classes = own[step] ?? { collective: Object.create(null), p2p: Object.create(null) };
          own[step] = classes;
          classes[kind][op] = info;
        }
      }
    }
  }
  return out;
}

/** cluster_communication_matrix.json, turned around the same way: rank → the links that leave it. Their ends are ranks of the job. */
export function bySource(json: unknown): Map<number, Record<string, Record<string, Record<string, unknown>>>> {
  const out = new Map<number, Record<string, Record<string, Record<string, unknown>>>>();
  for (const [first, steps] of Object.entries(object(json))) {
    for (const [step, ops] of Object.entries(object(steps))) {
      for (const [op, links] of Object.entries(object(ops))) {
        if (op.startsWith('Total')) continue;
        for (const [ends, link] of Object.entries(object(links))) {
          const rank = /^(\d{1,7})-\d{1,7}$/.exec(ends)?.[1];
          if (rank === undefined || (out.size >= MAX_RANKS && !out.has(Number(rank)))) continue;
          const own = out.get(Number(rank)) ?? Object.create(null);
          out.set(Number(rank), own);
          // One operation has one set of ranks, so its name is enough.
          const key = `${step}/${first}`;
          own[key] ??= { all: Object.create(null) };
          own[key].all[op] ??= Object.create(null);
          own[key].all[op][ends] = link;
        }
      }
    }
  }
  return out;
}

function ranksOf(value: unknown): number[] {
  return Array.isArray(value) ? value.filter((r): r is number => Number.isInteger(r) && r >= 0).slice(0, MAX_RANKS) : [];
}

/** communication_group.json; only newer versions name the groups, older ones list sets of ranks. Sets are unsorted. */
export function groupsOf(json: unknown): GroupInfo[] {
  const named = object(json).comm_group_parallel_info;
  const text = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 500) : '');
  return (Array.isArray(named) ? named.slice(0, MAX_GROUPS) : []).map((value): GroupInfo => {
    const group = object(value);
    const communicator = text(group.group_id);
    return {
      hash: text(group.group_name) || (communicator === '' ? '' : groupHash(communicator)),
      communicator,
      role: text(group.pg_name) || null,
      groupRank: null,
      ranks: ranksOf(group.rank_set).sort((a, b) => a - b),
    };
  });
}
