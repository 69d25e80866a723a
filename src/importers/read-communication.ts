import { z } from 'zod';
import type { CollectiveRecord, LinkSummary, LinkTable, PacketRow } from '../model/capture.ts';
import { createLinks, createPackets, NO_LINKS, opOfName, transportOf } from './link-tables.ts';

const Loose = z.record(z.string(), z.unknown());
const object = (value: unknown): Record<string, unknown> => {
  const parsed = Loose.safeParse(value);
  return parsed.success ? parsed.data : {};
};
/** No time or size of a profile is larger; sums of such numbers stay finite. */
const MAX_NUMBER = 1e18;
const num = (value: unknown): number => (typeof value === 'number' && Math.abs(value) <= MAX_NUMBER ? value : Number.NaN);

/** A larger size, MB, is none. */
const MAX_MB = 1e12;
const megabytes = (value: unknown): number => (typeof value === 'number' && Math.abs(value) <= MAX_MB ? value : Number.NaN);

const STEP = /^step(\d+)?$/;
const MAX_OPS = 500_000;

const P2P = /^hcom_(send|receive|batchsendrecv)/i;

/** msprof writes the operations without step and class; they then belong to the whole capture. */
function bySteps(json: unknown): Record<string, unknown> {
  const root = object(json);
  const flat = Object.entries(root).filter(([, value]) => object(value)['Communication Time Info'] !== undefined);
  if (flat.length === 0) return root;
  const of = (p2p: boolean): Record<string, unknown> => Object.fromEntries(flat.filter(([key]) => P2P.test(key) === p2p));
  return { step: { p2p: of(true), collective: of(false) } };
}

/** communication.json. The file's sums ("Total Op Info") are not read: they add ratios. `originUs` is the rank's zero. */
export function readCommunication(json: unknown, originUs: number): CollectiveRecord[] {
  const out: CollectiveRecord[] = [];
  for (const [stepKey, classes] of Object.entries(bySteps(json))) {
    const found = STEP.exec(stepKey);
    if (found === null) continue;
    const step = found[1] === undefined ? null : Number(found[1]);
    for (const kind of ['collective', 'p2p'] as const) {
      for (const [key, value] of Object.entries(object(object(classes)[kind]))) {
        if (key.startsWith('Total') || out.length >= MAX_OPS) continue;
        const at = key.lastIndexOf('@');
        const time = object(object(value)['Communication Time Info']);
        const bandwidth = object(object(value)['Communication Bandwidth Info']);
        const start = num(time['Start Timestamp(us)']);
        const [sdma, rdma] = [object(bandwidth.SDMA), object(bandwidth.RDMA)];
        const [sdmaMb, rdmaMb] = [megabytes(sdma['Transit Size(MB)']), megabytes(rdma['Transit Size(MB)'])];
        out.push({
          step,
          kind,
          name: (at === -1 ? key : key.slice(0, at)).slice(0, 200),
          group: at === -1 ? '' : key.slice(at + 1, at + 40),
          start: Number.isNaN(start) ? Number.NaN : (start - originUs) * 1000,
          elapsedMs: num(time['Elapse Time(ms)']),
          transitMs: num(time['Transit Time(ms)']),
          waitMs: num(time['Wait Time(ms)']),
          synchronizationMs: num(time['Synchronization Time(ms)']),
          idleMs: num(time['Idle Time(ms)']),
          sizeMb: Math.max(0, sdmaMb || 0) + Math.max(0, rdmaMb || 0),
          sdmaMs: num(sdma['Transit Time(ms)']),
          rdmaMs: num(rdma['Transit Time(ms)']),
          rdmaMb,
        });
      }
    }
  }
  return out;
}

/** Earliest whole µs of communication.json, used as the rank's zero when nothing better exists. */
export function firstCommunicationUs(json: unknown): number | null {
  let first: number | null = null;
  for (const classes of Object.values(bySteps(json))) {
    for (const ops of Object.values(object(classes))) {
      for (const value of Object.values(object(ops))) {
        const start = num(object(object(value)['Communication Time Info'])['Start Timestamp(us)']);
        if (start > 0 && (first === null || start < first)) first = start;
      }
    }
  }
  return first === null ? null : Math.floor(first);
}

/** Packets of all operations of communication.json by transport and size. SDMA repeats what HCCS, PCIe and SIO hold. */
export function readPackets(json: unknown): PacketRow[] {
  const packets = createPackets();
  for (const classes of Object.values(bySteps(json))) {
    for (const ops of Object.values(object(classes))) {
      for (const [key, value] of Object.entries(object(ops))) {
        if (key.startsWith('Total')) continue;
        for (const [name, link] of Object.entries(object(object(value)['Communication Bandwidth Info']))) {
          const transport = name === 'SDMA' ? null : transportOf(name);
          if (transport === null) continue;
          for (const [mb, figures] of Object.entries(object(object(link)['Size Distribution']))) {
            if (Array.isArray(figures)) packets.add(transport, Math.round(megabytes(Number(mb)) * 1e6), num(figures[0]), num(figures[1]));
          }
        }
      }
    }
  }
  return packets.rows();
}

/** What communication.json and communication_matrix.json tell of the links; null without either. */
export function linkSummary(matrix: LinkSummary | null, packets: readonly PacketRow[]): LinkSummary | null {
  if (matrix === null && packets.length === 0) return null;
  return { ids: matrix?.ids ?? new Map(), links: matrix?.links ?? NO_LINKS, packets };
}

const LINK = /^(\d{1,7})-(\d{1,7})$/;
/** Samples and sum of one kind of collective; older files name every call instead. */
const KIND = /^(.{1,80}?)-(top1|middle|bottom\d|total)$/;

/** Links of communication_matrix.json; `global` for the matrix of a cluster, whose ends are ranks of the job. */
export function readMatrix(json: unknown, global: boolean): LinkTable {
  const links = createLinks(global);
  for (const classes of Object.values(object(json))) {
    for (const ops of Object.values(object(classes))) {
      const rows = Object.entries(object(ops)).filter(([key]) => !key.startsWith('Total'));
      // The class of a sum is spelt shorter than the operation: `reduce` stands for reduceScatter, too. Its samples name the operation.
      const named = new Map<string, string>();
      for (const [key, pairs] of rows) {
        const { kind, group } = kindOf(key);
        if (kind === null) continue;
        for (const link of Object.values(object(pairs))) {
          const call = object(link)['Op Name'];
          const op = typeof call === 'string' ? opOfName(call) : null;
          if (op !== null) named.set(`${kind}@${group}`, op);
        }
      }
      for (const [key, pairs] of rows) {
        const { name, kind, isSum, group } = kindOf(key);
        for (const [ends, value] of Object.entries(object(pairs))) {
          const pair = LINK.exec(ends);
          const link = object(value);
          const transport = transportOf(link['Transport Type']);
          if (pair === null || transport === null) continue;
          const said = link['Op Name'];
          const call = kind === null ? name : isSum || typeof said !== 'string' ? null : said.slice(0, 200);
          if (call === null && !isSum) continue;
          links.add({
            group,
            op: opOfName(call ?? '') ?? named.get(`${kind}@${group}`) ?? (kind ?? name).slice(0, 40),
            source: Number(pair[1]),
            target: Number(pair[2]),
            transport,
            bytes: megabytes(link['Transit Size(MB)']) * 1e6,
            ms: num(link['Transit Time(ms)']),
            call,
          });
        }
      }
    }
  }
  return links.table();
}

function kindOf(key: string): { name: string; kind: string | null; isSum: boolean; group: string } {
  const at = key.lastIndexOf('@');
  const name = (at === -1 ? key : key.slice(0, at)).slice(0, 200);
  const found = KIND.exec(name);
  return { name, kind: found?.[1] ?? null, isSum: found?.[2] === 'total', group: at === -1 ? '' : key.slice(at + 1, at + 40) };
}

/** communication_matrix.json: its links, and which rank numbers they name, by group hash. They are group-local in current versions. */
export function readLinks(json: unknown): LinkSummary | null {
  const ids = new Map<string, Set<number>>();
  for (const classes of Object.values(object(json))) {
    for (const ops of Object.values(object(classes))) {
      for (const [key, links] of Object.entries(object(ops))) {
        const at = key.lastIndexOf('@');
        const group = at === -1 ? '' : key.slice(at + 1, at + 40);
        let members = ids.get(group);
        if (members === undefined) {
          if (ids.size >= 10_000) continue;
          members = new Set();
          ids.set(group, members);
        }
        for (const link of Object.keys(object(links))) {
          const pair = LINK.exec(link);
          if (pair === null || members.size > 200_000) continue;
          members.add(Number(pair[1]));
          members.add(Number(pair[2]));
        }
      }
    }
  }
  if (ids.size === 0) return null;
  return {
    ids: new Map([...ids].map(([group, set]) => [group, [...set].sort((a, b) => a - b)])),
    links: readMatrix(json, false),
    packets: [],
  };
}
