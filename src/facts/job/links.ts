import { median } from '../../base/statistics.ts';
import { TRANSPORTS, type Transport } from '../../model/capture.ts';
import { groupOf } from './groups.ts';
import type { JobFacts } from './index.ts';

/** What the two ends of a link are called: ranks of the job, or numbers inside the group when nothing translates them. */
export interface LinkEnds {
  readonly ends: readonly [number, number];
  readonly global: boolean;
}

/** Both directions of a link between two cards, over all collectives. */
export interface LinkFacts extends LinkEnds {
  readonly key: string;
  readonly transport: Transport;
  /** Index of a rank that reports it. */
  readonly reporter: number;
  readonly bytes: number;
  readonly ms: number;
  readonly parts: readonly LinkPart[];
}

/** One direction in one kind of collective of one group. */
export interface LinkPart {
  readonly group: string;
  readonly op: string;
  readonly reporter: number;
  readonly source: number;
  readonly bytes: number;
  readonly ms: number;
  readonly samples: readonly { readonly call: string; readonly bytes: number; readonly ms: number }[];
}

const known = new WeakMap<JobFacts, readonly LinkFacts[]>();

/** Links that carried something. */
export function linksOf(job: JobFacts): readonly LinkFacts[] {
  const before = known.get(job);
  if (before !== undefined) return before;
  const translate = translators(job);
  const links = new Map<string, LinkFacts & { bytes: number; ms: number; parts: LinkPart[] }>();
  job.ranks.forEach((rank, reporter) => {
    const table = rank.links?.links;
    if (table === undefined) return;
    const samples = table.group.map((): { call: string; bytes: number; ms: number }[] => []);
    table.sampleLink.forEach((link, i) => {
      samples[link]!.push({ call: table.sampleCall[i]!, bytes: table.sampleBytes[i]!, ms: table.sampleMs[i]! });
    });
    for (let i = 0; i < table.group.length; i++) {
      const group = table.group[i]!;
      const ids = [table.source[i]!, table.target[i]!] as const;
      const ranks = table.global ? ids : ids.map((id) => translate(group, id));
      const isGlobal = ranks.every((r) => r !== null);
      const [a, b] = (isGlobal ? (ranks as readonly number[]) : ids) as readonly [number, number];
      const ends: [number, number] = a < b ? [a, b] : [b, a];
      const transport = TRANSPORTS[table.transport[i]!]!;
      const key = `${isGlobal ? '' : `${group}/`}${ends.join('-')}/${transport}`;
      let link = links.get(key);
      if (link === undefined) {
        link = { key, ends, global: isGlobal, transport, reporter, bytes: 0, ms: 0, parts: [] };
        links.set(key, link);
      }
      link.bytes += table.bytes[i]!;
      link.ms += table.ms[i]!;
      link.parts.push({ group, op: table.op[i]!, reporter, source: a, bytes: table.bytes[i]!, ms: table.ms[i]!, samples: samples[i]! });
    }
  });
  const out = [...links.values()].sort((a, b) => b.ms - a.ms);
  known.set(job, out);
  return out;
}

/** Group-local number → global rank: by the metadata, else by which rank reports under which number; null when neither tells. */
function translators(job: JobFacts): (group: string, id: number) => number | null {
  const own = new Map<string, Map<number, number>>();
  for (const rank of job.ranks) {
    const table = rank.links?.links;
    if (table === undefined || rank.rank === null) continue;
    const sources = new Map<string, Set<number>>();
    table.group.forEach((group, i) => {
      const set = sources.get(group) ?? new Set();
      set.add(table.source[i]!);
      sources.set(group, set);
    });
    for (const [group, set] of sources) {
      if (set.size !== 1) continue;
      const map = own.get(group) ?? new Map<number, number>();
      map.set([...set][0]!, rank.rank);
      own.set(group, map);
    }
  }
  const highest = new Map<string, number>();
  for (const rank of job.ranks) {
    for (const [group, ids] of rank.links?.ids ?? []) highest.set(group, Math.max(highest.get(group) ?? 0, ids[ids.length - 1] ?? 0));
  }
  return (hash, id) => {
    const { ranks } = groupOf(job, hash);
    // A number beyond the group's size can only be a global rank, and then all of them are.
    if (ranks.length > 0) return (highest.get(hash) ?? 0) >= ranks.length ? id : (ranks[id] ?? null);
    const reported = own.get(hash);
    const exact = reported?.get(id);
    if (exact !== undefined) return exact;
    // Every rank of the job, each under its own number: the default group.
    const covers = (highest.get(hash) ?? 0) + 1 >= (job.world.size ?? Number.POSITIVE_INFINITY);
    const same = reported !== undefined && reported.size > 1 && [...reported].every(([local, rank]) => local === rank);
    return covers && same ? id : null;
  };
}

/** One link against the other links of its kind in calls of the same kind and size. */
export interface LinkJudgement {
  readonly link: LinkFacts;
  /** Times as long as the others need for the same bytes: median over the calls, the least of them, and over all bytes. */
  readonly slowdown: number;
  readonly least: number;
  readonly overall: number;
  /** Calls that were compared. */
  readonly calls: number;
  /** Links it was compared with, and what they and it carry per ms of transfer, bytes. */
  readonly peers: number;
  readonly rate: number;
  readonly peerRate: number;
  /** ms that each part would have taken less at the others' rate, whole capture; parallel to `link.parts`. */
  readonly lostMs: readonly number[];
}

/** Transfers shorter than this say more of the clock than of the link, ms: time stamps are good to about 1 µs. */
const LEAST_MS = 0.02;
/** A link is compared with at least this many others. */
const LEAST_PEERS = 2;

/** Size class of a transfer: only equal ones are compared. */
const sizeOf = (bytes: number): number => Math.round(Math.log(bytes) / Math.log(1.25));

interface Observed {
  readonly link: LinkFacts;
  readonly rate: number;
  readonly call: string;
}

/** Judges every link that has others to be compared with; only links of one transport are compared. */
export function judgeLinks(job: JobFacts): LinkJudgement[] {
  const links = linksOf(job);
  const buckets = new Map<string, Observed[]>();
  const sums = new Map<string, { link: LinkFacts; bytes: number; ms: number }[]>();
  const kindOf = (link: LinkFacts, part: LinkPart): string => `${part.op}/${groupOf(job, part.group).size ?? part.group}/${link.transport}`;
  for (const link of links) {
    for (const part of link.parts) {
      const kind = kindOf(link, part);
      push(sums, kind, { link, bytes: part.bytes, ms: part.ms });
      for (const s of part.samples) {
        if (s.ms < LEAST_MS) continue;
        push(buckets, `${kind}/${sizeOf(s.bytes)}`, { link, rate: s.bytes / s.ms, call: `${part.group}/${s.call}/${part.source}` });
      }
    }
  }
  // Rate of the others of each bucket: the median over links of each link's own median, so that a busy link counts once.
  const slowdowns = new Map<LinkFacts, Map<string, number>>();
  const peersOf = new Map<LinkFacts, number>();
  for (const list of buckets.values()) {
    const rates = new Map<LinkFacts, number>();
    for (const [link, own] of Map.groupBy(list, (o) => o.link)) rates.set(link, median(own.map((o) => o.rate)));
    if (rates.size <= LEAST_PEERS) continue;
    const others = othersMedian([...rates.entries()]);
    for (const o of list) {
      const calls = slowdowns.get(o.link) ?? new Map<string, number>();
      calls.set(o.call, others(o.link) / o.rate);
      slowdowns.set(o.link, calls);
      peersOf.set(o.link, Math.max(peersOf.get(o.link) ?? 0, rates.size - 1));
    }
  }
  /** Rate of the others over all bytes of a kind; null with too few of them. */
  const expectedOf = new Map<string, ((link: LinkFacts) => number) | null>();
  for (const [kind, list] of sums) {
    const own = new Map<LinkFacts, { bytes: number; ms: number }>();
    for (const { link, bytes, ms } of list) {
      const sum = own.get(link) ?? { bytes: 0, ms: 0 };
      own.set(link, { bytes: sum.bytes + bytes, ms: sum.ms + ms });
    }
    expectedOf.set(kind, own.size <= LEAST_PEERS ? null : othersMedian([...own].map(([link, t]) => [link, t.bytes / t.ms] as const)));
  }
  const out: LinkJudgement[] = [];
  for (const [link, calls] of slowdowns) {
    const factors = [...calls.values()];
    let expected = 0;
    let observed = 0;
    let bytes = 0;
    const lostMs = link.parts.map((part) => {
      const others = expectedOf.get(kindOf(link, part))!;
      const should = others === null ? Number.NaN : part.bytes / others(link);
      if (!(should > 0)) return 0;
      expected += should;
      observed += part.ms;
      bytes += part.bytes;
      return Math.max(0, part.ms - should);
    });
    if (!(expected > 0)) continue;
    out.push({
      link,
      slowdown: median(factors),
      least: Math.min(...factors),
      overall: observed / expected,
      calls: factors.length,
      peers: peersOf.get(link)!,
      rate: bytes / observed,
      peerRate: bytes / expected,
      lostMs,
    });
  }
  return out.sort((a, b) => b.slowdown - a.slowdown);
}

/** Links over PCIe beside links over HCCS or SIO in the same calls: how much slower they are is the topology, not a fault. */
export interface TypeGap {
  readonly slow: readonly LinkFacts[];
  readonly fast: Transport;
  /** Times as long, median over the calls and sizes that used both. */
  readonly slowdown: number;
  readonly calls: number;
  /** Bytes per ms. */
  readonly rate: number;
  readonly fastRate: number;
  /** Of each slow link, parallel to `slow` and its parts: ms less at the faster rate, whole capture. */
  readonly lostMs: readonly (readonly number[])[];
}

export function typeGap(job: JobFacts): TypeGap | null {
  const links = linksOf(job);
  const buckets = new Map<string, Observed[]>();
  for (const link of links) {
    if (link.transport === 'RDMA' || link.transport === 'OTHER') continue;
    for (const part of link.parts)
      for (const s of part.samples)
        if (s.ms >= LEAST_MS) push(buckets, `${part.op}/${part.group}/${sizeOf(s.bytes)}`, { link, rate: s.bytes / s.ms, call: s.call });
  }
  const slow = new Set<LinkFacts>();
  const calls = new Set<string>();
  const ratios: number[] = [];
  const rates: number[] = [];
  const fastRates: number[] = [];
  let fast: Transport = 'HCCS';
  for (const [key, list] of buckets) {
    const pcie = list.filter((o) => o.link.transport === 'PCIE');
    const quick = list.filter((o) => o.link.transport !== 'PCIE');
    if (pcie.length === 0 || quick.length === 0) continue;
    const [rate, fastRate] = [median(pcie.map((o) => o.rate)), median(quick.map((o) => o.rate))];
    ratios.push(fastRate / rate);
    rates.push(rate);
    fastRates.push(fastRate);
    fast = quick[0]!.link.transport;
    for (const o of pcie) {
      slow.add(o.link);
      calls.add(`${key}/${o.call}`);
    }
  }
  if (ratios.length === 0) return null;
  const fastRate = median(fastRates);
  const list = [...slow];
  return {
    slow: list,
    fast,
    slowdown: median(ratios),
    calls: calls.size,
    rate: median(rates),
    fastRate,
    lostMs: list.map((link) => link.parts.map((part) => Math.max(0, part.ms - part.bytes / fastRate))),
  };
}

function push<V>(map: Map<string, V[]>, key: string, value: V): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

/** Median of all values but one's own, in constant time each. */
function othersMedian(rates: readonly (readonly [LinkFacts, number])[]): (link: LinkFacts) => number {
  const sorted = [...rates].sort((a, b) => a[1] - b[1]);
  const place = new Map(sorted.map(([link], i) => [link, i] as const));
  const at = (i: number, without: number): number => sorted[i < without ? i : i + 1]![1];
  const n = sorted.length - 1;
  return (link) => {
    const without = place.get(link)!;
    return n % 2 === 1 ? at(n >> 1, without) : (at((n >> 1) - 1, without) + at(n >> 1, without)) / 2;
  };
}
