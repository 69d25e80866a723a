import type { LinkTable, PacketRow, Transport } from '../model/capture.ts';
import { TRANSPORTS } from '../model/capture.ts';

/** Kept of one rank, busiest first. A rank has a few links per group: the cards of its server and its counterparts on the others. */
const MAX_LINKS = 1_024;
const MAX_SAMPLES_PER_LINK = 24;
const MAX_PACKETS = 128;
/** Looked at before anything is dropped: foreign tables may name what they like. */
const MAX_SEEN = 50_000;

/** Names of links by what they are; null for copies inside a card. */
export function transportOf(name: unknown): Transport | null {
  switch (name) {
    case 'LOCAL':
    case 'ON_CHIP':
      return null;
    case 'HCCS':
    case 'HCCS_SW':
      return 'HCCS';
    case 'PCIE':
      return 'PCIE';
    case 'SIO':
      return 'SIO';
    case 'RDMA':
    case 'ROCE':
    case 'STANDARD_ROCE':
      return 'RDMA';
    default:
      return 'OTHER';
  }
}

/** `allReduce` of `hcom_allReduce__586_0_1`; null for other names. */
export function opOfName(name: string): string | null {
  return /^hcom_([A-Za-z]+)_/.exec(name)?.[1] ?? null;
}

/** One row of a matrix: a link in one call, or in all calls of one kind and step. */
export interface MatrixRow {
  readonly group: string;
  readonly op: string;
  readonly source: number;
  readonly target: number;
  readonly transport: Transport;
  readonly bytes: number;
  readonly ms: number;
  /** Name of the call; null for a sum over calls. */
  readonly call: string | null;
}

interface Link {
  readonly group: string;
  readonly op: string;
  readonly source: number;
  readonly target: number;
  readonly transport: Transport;
  /** Sums as the file has them, and of the calls it names; older files have no sums. */
  bytes: number;
  ms: number;
  readonly samples: Map<string, { readonly bytes: number; readonly ms: number }>;
}

/** Gathers the rows of a matrix into the links of one rank. */
export function createLinks(global: boolean): { add(row: MatrixRow): void; table(): LinkTable } {
  const links = new Map<string, Link>();
  return {
    add(row) {
      if (!(row.bytes > 0) || !(row.ms > 0) || row.source === row.target) return;
      const key = `${row.group}/${row.op}/${row.source}-${row.target}/${row.transport}`;
      let link = links.get(key);
      if (link === undefined) {
        if (links.size >= MAX_SEEN) return;
        const { group, op, source, target, transport } = row;
        link = { group, op, source, target, transport, bytes: 0, ms: 0, samples: new Map() };
        links.set(key, link);
      }
      if (row.call === null) {
        link.bytes += row.bytes;
        link.ms += row.ms;
      } else if (link.samples.size < MAX_SEEN) link.samples.set(row.call, { bytes: row.bytes, ms: row.ms });
    },
    table: () => tableOf([...links.values()], global),
  };
}

function tableOf(links: readonly Link[], global: boolean): LinkTable {
  for (const link of links) {
    if (link.bytes > 0) continue;
    for (const { bytes, ms } of link.samples.values()) {
      link.bytes += bytes;
      link.ms += ms;
    }
  }
  const kept = [...links].sort((a, b) => b.ms - a.ms).slice(0, MAX_LINKS);
  const samples = kept.flatMap((link, at) => [...link.samples].slice(0, MAX_SAMPLES_PER_LINK).map(([call, s]) => ({ at, call, ...s })));
  return {
    global,
    group: kept.map((l) => l.group),
    op: kept.map((l) => l.op),
    source: Int32Array.from(kept, (l) => l.source),
    target: Int32Array.from(kept, (l) => l.target),
    transport: Uint8Array.from(kept, (l) => TRANSPORTS.indexOf(l.transport)),
    bytes: Float64Array.from(kept, (l) => l.bytes),
    ms: Float64Array.from(kept, (l) => l.ms),
    sampleLink: Int32Array.from(samples, (s) => s.at),
    sampleCall: samples.map((s) => s.call),
    sampleBytes: Float64Array.from(samples, (s) => s.bytes),
    sampleMs: Float64Array.from(samples, (s) => s.ms),
  };
}

export const NO_LINKS: LinkTable = tableOf([], false);

/** Gathers packets by transport and size. */
export function createPackets(): { add(transport: Transport, bytes: number, count: number, ms: number): void; rows(): PacketRow[] } {
  const sums = new Map<string, { transport: Transport; bytes: number; count: number; ms: number }>();
  return {
    add(transport, bytes, count, ms) {
      if (!(bytes > 0) || !(count > 0) || !(ms >= 0)) return;
      const key = `${transport}/${bytes}`;
      const sum = sums.get(key);
      if (sum !== undefined) {
        sum.count += count;
        sum.ms += ms;
      } else if (sums.size < MAX_SEEN) sums.set(key, { transport, bytes, count, ms });
    },
    rows: () => [...sums.values()].sort((a, b) => b.ms - a.ms).slice(0, MAX_PACKETS),
  };
}
