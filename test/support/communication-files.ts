/* Communication tables written by hand: calls, links and groups that no simulation makes. */
import { rankFacts } from '../../src/facts/rank/index.ts';
import { groupHash } from '../../src/importers/group-hash.ts';
import { findRankFolders, readRank } from '../../src/importers/index.ts';
import type { RankFacts } from '../../src/model/facts.ts';
import type { Report } from '../../src/model/report.ts';
import type { Rule } from '../../src/model/rule.ts';
import { entryOf, ORIGIN, STEP_HEADER } from './profile-text.ts';
import { reportOf } from './simulated.ts';

export interface Moved {
  readonly mb: number;
  readonly ms: number;
  /** MB of a packet → how many and their time. */
  readonly packets?: Readonly<Record<string, readonly [number, number]>>;
}

export interface Call {
  /** hcom_allReduce__586_0_1 */
  readonly name: string;
  readonly group: string;
  /** µs after the origin. */
  readonly at: number;
  readonly ms: number;
  readonly moved: Readonly<Partial<Record<'HCCS' | 'PCIE' | 'RDMA', Moved>>>;
}

const NOTHING = { 'Transit Size(MB)': 0, 'Transit Time(ms)': 0, 'Bandwidth(GB/s)': 0, 'Large Packet Ratio': 0, 'Size Distribution': {} };

/** communication.json of one step. */
export function communication(calls: readonly Call[], step = 'step5'): string {
  const of = (p2p: boolean): object =>
    Object.fromEntries(
      calls
        .filter((c) => /^hcom_(send|receive|batchSendRecv)/.test(c.name) === p2p)
        .map((c) => {
          const links = Object.entries(c.moved).map(([type, m]) => [
            type,
            { 'Transit Size(MB)': m.mb, 'Transit Time(ms)': m.ms, 'Bandwidth(GB/s)': m.mb / m.ms, 'Size Distribution': m.packets ?? {} },
          ]);
          const inside = [c.moved.HCCS, c.moved.PCIE].filter((m) => m !== undefined);
          const sdma = {
            ...NOTHING,
            'Transit Size(MB)': inside.reduce((sum, m) => sum + m.mb, 0),
            'Transit Time(ms)': inside.reduce((sum, m) => sum + m.ms, 0),
          };
          return [
            `${c.name}@${c.group}`,
            {
              'Communication Time Info': { 'Start Timestamp(us)': ORIGIN + c.at, 'Elapse Time(ms)': c.ms, 'Transit Time(ms)': 0 },
              'Communication Bandwidth Info': {
                RDMA: NOTHING,
                HCCS: NOTHING,
                PCIE: NOTHING,
                SIO: NOTHING,
                ...Object.fromEntries(links),
                SDMA: inside.length === 0 ? NOTHING : sdma,
              },
            },
          ];
        }),
    );
  return JSON.stringify({ [step]: { p2p: of(true), collective: of(false) } });
}

export interface Link {
  readonly group: string;
  /** Op Name of the sample, or the kind of a sum. */
  readonly call: string;
  readonly ends: string;
  readonly type: string;
  readonly mb: number;
  readonly ms: number;
}

/** communication_matrix.json of the older form: every call by name. */
export function matrix(links: readonly Link[], step = 'step5'): string {
  const ops: Record<string, Record<string, object>> = {};
  for (const { group, call, ends, type, mb, ms } of links) {
    const key = `${call}@${group}`;
    ops[key] ??= {};
    ops[key][ends] = {
      'Transport Type': type,
      'Transit Size(MB)': mb,
      'Transit Time(ms)': ms,
      'Bandwidth(GB/s)': ms > 0 ? mb / ms : 0,
      'Op Name': call,
    };
  }
  return JSON.stringify({ [step]: { p2p: {}, collective: ops } });
}

/** Groups by name of the communicator. */
export function metadata(
  groups: Readonly<Record<string, { role: string; ranks: readonly number[] }>>,
  rank: number,
  world: number,
): string {
  const info = Object.fromEntries(
    Object.entries(groups)
      .filter(([, g]) => g.ranks.includes(rank))
      .map(([name, g]) => [name, { group_name: g.role, group_rank: g.ranks.indexOf(rank), global_ranks: g.ranks }]),
  );
  return JSON.stringify({ parallel_group_info: info, distributed_args: { rank, world_size: world } });
}

export const hashOf = (communicator: string): string => groupHash(communicator);

/** step_trace_time.csv of one step, ms. */
export function stepTimes(computing: number, exposed: number, free: number, overlapped = 0): string {
  const us = [computing, exposed, overlapped, exposed + overlapped, free, computing + exposed + free, 0, exposed, 0].map((ms) => ms * 1000);
  return `${STEP_HEADER}\n5,${us.join(',')}\n`;
}

/** Facts of an upload given as path → content; ranks by their folder's number. */
export async function factsFrom(files: Readonly<Record<string, string>>): Promise<RankFacts[]> {
  const { folders } = findRankFolders(Object.entries(files).map(([path, content]) => entryOf(path, content)));
  const ranks = await Promise.all(folders.map(async (folder) => rankFacts(await readRank(folder, () => {}))));
  return ranks.sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
}

/** What one rule says of an upload. */
export async function reportFrom(files: Readonly<Record<string, string>>, rule: Rule): Promise<Report> {
  return reportOf(await factsFrom(files), {}, [rule]);
}
