import { z } from 'zod';
import type { CollectiveRecord, LinkSummary } from '../model/capture.ts';

const Loose = z.record(z.string(), z.unknown());
const object = (value: unknown): Record<string, unknown> => {
  const parsed = Loose.safeParse(value);
  return parsed.success ? parsed.data : {};
};
/** No time or size of a profile is larger; sums of such numbers stay finite. */
const MAX_NUMBER = 1e18;
const num = (value: unknown): number => (typeof value === 'number' && Math.abs(value) <= MAX_NUMBER ? value : Number.NaN);

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
        let sizeMb = 0;
        for (const link of ['SDMA', 'RDMA']) {
          const size = num(object(bandwidth[link])['Transit Size(MB)']);
          if (size > 0) sizeMb += size;
        }
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
          sizeMb,
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

/** communication_matrix.json: which rank numbers its links name, by group hash. They are group-local in current versions. */
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
          const pair = /^(\d{1,7})-(\d{1,7})$/.exec(link);
          if (pair === null || members.size > 200_000) continue;
          members.add(Number(pair[1]));
          members.add(Number(pair[2]));
        }
      }
    }
  }
  if (ids.size === 0) return null;
  return { ids: new Map([...ids].map(([group, set]) => [group, [...set].sort((a, b) => a - b)])) };
}
