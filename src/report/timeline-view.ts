import { deflateRawSync } from 'node:zlib';
import type { JobFacts } from '../facts/job/index.ts';
import { lateness } from '../facts/job/lateness.ts';
import { COMMUNICATION, COMPUTE, type RankFacts } from '../model/facts.ts';
import type { Report } from '../model/report.ts';

/** What a page can hold and a browser draws smoothly. */
const RANKS = 6;
const STEPS = 4;
const SLICES = 400_000;

/** The kinds of time of a slice; an index into this list is what the data holds. */
export const SLICE_KINDS = ['computing', 'exposed', 'layout', 'data', 'host', 'waiting'] as const;
type SliceKind = (typeof SLICE_KINDS)[number];

export interface TimelineLane {
  readonly lane: 'device' | 'communication' | 'host';
  /** Stream of the device; null elsewhere. */
  readonly stream: number | null;
  readonly count: number;
  /** Raw deflate, base64: for each slice four varints: start less the start before it, duration (both 10 ns), name, kind. */
  readonly data: string;
}

export interface TimelineView {
  readonly parts: readonly {
    readonly rank: number | null;
    readonly step: number | null;
    /** Start of the part on the rank's own clock, µs, and its length, ms. */
    readonly startUs: number;
    readonly lengthMs: number;
    /** By how much the part starts after the first of this step, on the common clock, ms. */
    readonly shiftMs: number;
    readonly names: readonly string[];
    readonly lanes: readonly TimelineLane[];
  }[];
  /** Ranks and steps that were captured and are not here. */
  readonly leftOut: { readonly ranks: number; readonly steps: number };
}

interface Slice {
  readonly start: number;
  readonly duration: number;
  readonly name: string;
  readonly kind: SliceKind;
}

const LAYOUT = /^(transdata|transpose|cast|memcpy|copy|asstrided|contiguous|tensormove)/i;

/** Bytes of a number, seven bits each, the last one below 128. */
function varint(value: number, into: number[]): void {
  let rest = Math.max(0, Math.round(value));
  while (rest >= 128) {
    into.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  into.push(rest);
}

function pack(slices: readonly Slice[], from: number, nameOf: (name: string) => number): string {
  const bytes: number[] = [];
  let before = 0;
  for (const slice of [...slices].sort((a, b) => a.start - b.start)) {
    const start = Math.round((slice.start - from) / 10);
    varint(start - before, bytes);
    varint(slice.duration / 10, bytes);
    varint(nameOf(slice.name), bytes);
    varint(SLICE_KINDS.indexOf(slice.kind), bytes);
    before = start;
  }
  return deflateRawSync(Uint8Array.from(bytes)).toString('base64');
}

/** Evidence with a place in time, the most important first: index of the rank and of its step. */
function evidencePlaces(job: JobFacts, report: Report): { rank: number; step: number }[] {
  return report.findings.flatMap((finding) =>
    finding.evidence.flatMap(({ rank, step, startUs }) => {
      if (rank == null || startUs === undefined) return [];
      const at = job.ranks.findIndex((r) => r.rank === rank);
      const own = job.ranks[at]?.steps ?? [];
      const ns = startUs * 1000;
      const of = own.findIndex((s) => (step == null ? ns >= s.start && ns < s.end : s.id === step));
      return of < 0 ? [] : [{ rank: at, step: of }];
    }),
  );
}

/** Ranks worth a look: those that evidence and findings name, the one that sets the pace, and one in the middle. */
function chosenRanks(job: JobFacts, report: Report, places: readonly { rank: number }[]): number[] {
  const named = report.findings.filter((f) => f.symptomOf === null).flatMap((f) => (f.ranks.length < job.ranks.length ? f.ranks : []));
  const late =
    job.ranks.length > 1 && job.clock.usable && job.noReplay !== 'ranks-missing' ? lateness(job).culprits.map((c) => c.rank) : [];
  const byRank = named.map((rank) => job.ranks.findIndex((r) => r.rank === rank));
  const seen = [...new Set(places.map(({ rank }) => rank))].slice(0, RANKS - 2);
  const wanted = [...seen, job.steps.pace, ...byRank, ...late, ...job.ranks.map((_, i) => i)];
  return [...new Set(wanted)].filter((i) => i >= 0 && job.ranks[i]?.tape != null).slice(0, RANKS);
}

/** The median step, the longest one, and those of the evidence. */
function chosenSteps(job: JobFacts, places: readonly { step: number }[]): number[] {
  const pace = job.ranks[job.steps.pace];
  const used = job.steps.usedIndex.filter((s) => pace?.steps[s] !== undefined);
  const sorted = [...used].sort((a, b) => length(pace!, a) - length(pace!, b));
  const seen = [...new Set(places.map(({ step }) => step))].slice(0, STEPS - 2);
  return [...new Set([sorted[(sorted.length - 1) >> 1], sorted.at(-1), ...seen])].filter((s) => s !== undefined).slice(0, STEPS);
}

const length = (rank: RankFacts, step: number): number => rank.steps[step]!.end - rank.steps[step]!.start;

function slicesOf(
  rank: RankFacts,
  from: number,
  to: number,
): Map<string, { lane: TimelineLane['lane']; stream: number | null; slices: Slice[] }> {
  const tape = rank.tape!;
  const lanes = new Map<string, { lane: TimelineLane['lane']; stream: number | null; slices: Slice[] }>();
  const add = (lane: TimelineLane['lane'], stream: number | null, slice: Slice): void => {
    if (slice.start >= to || slice.start + slice.duration <= from) return;
    // A slice that reaches over the edge is cut at it.
    const start = Math.max(from, slice.start);
    const kept = { ...slice, start, duration: Math.min(to, slice.start + slice.duration) - start };
    const key = `${lane} ${stream}`;
    const known = lanes.get(key);
    if (known === undefined) lanes.set(key, { lane, stream, slices: [kept] });
    else known.slices.push(kept);
  };
  for (const fetch of rank.loader?.fetches ?? [])
    add('host', null, { start: fetch.start, duration: fetch.end - fetch.start, name: 'DataLoader.__next__', kind: 'data' });
  for (let s = 0; s < tape.syncs.start.length; s++) {
    const site = rank.host?.syncs[tape.syncs.site[s] ?? -1];
    add('host', null, {
      start: tape.syncs.start[s]!,
      duration: tape.syncs.end[s]! - tape.syncs.start[s]!,
      name: site === undefined ? 'synchronize' : site.operator === '' ? site.call : site.operator,
      kind: 'waiting',
    });
  }
  for (const call of rank.compile?.calls ?? [])
    add('host', null, { start: call.start, duration: call.end - call.start, name: 'aclopCompileAndExecute', kind: 'host' });
  for (const call of rank.host?.gc?.calls ?? [])
    add('host', null, { start: call.start, duration: call.end - call.start, name: 'gc', kind: 'host' });
  for (let i = 0; i < tape.start.length; i++) {
    const start = tape.start[i]!;
    if (start >= to || start + tape.duration[i]! <= from) continue;
    const collective = rank.collectives[tape.collective[i]!];
    const name = collective?.name ?? tape.types[tape.type[i]!] ?? '';
    const isComm = tape.kind[i] === COMMUNICATION;
    const kind: SliceKind = isComm ? 'exposed' : tape.kind[i] === COMPUTE && !LAYOUT.test(name) ? 'computing' : 'layout';
    add(isComm ? 'communication' : 'device', tape.stream[i]!, { start, duration: tape.duration[i]!, name, kind });
  }
  return lanes;
}

const LANE_ORDER = { host: 0, device: 1, communication: 2 } as const;

/** Slices of the ranks and steps worth a look, for pictures. null: the profile has no tasks with times. */
export function timelineView(job: JobFacts, report: Report): TimelineView | null {
  const places = evidencePlaces(job, report);
  const ranks = chosenRanks(job, report, places);
  const steps = chosenSteps(job, places);
  let left = SLICES;
  const parts: TimelineView['parts'][number][] = [];
  for (const step of steps) {
    const present = ranks.filter((r) => job.ranks[r]!.steps[step] !== undefined && length(job.ranks[r]!, step) > 0);
    const starts = present.map((r) => job.ranks[r]!.steps[step]!.start + (job.clock.usable ? (job.clock.offset[r] ?? 0) : 0));
    const first = Math.min(...starts);
    for (const [k, r] of present.entries()) {
      const rank = job.ranks[r]!;
      const { start: from, end: to, id } = rank.steps[step]!;
      const lanes = [...slicesOf(rank, from, to).values()].sort(
        (a, b) => LANE_ORDER[a.lane] - LANE_ORDER[b.lane] || b.slices.length - a.slices.length,
      );
      const count = lanes.reduce((sum, lane) => sum + lane.slices.length, 0);
      if (count > left) continue;
      left -= count;
      const names: string[] = [];
      const indices = new Map<string, number>();
      const nameOf = (name: string): number => {
        let index = indices.get(name);
        if (index === undefined) {
          index = names.push(name.slice(0, 200)) - 1;
          indices.set(name, index);
        }
        return index;
      };
      parts.push({
        rank: rank.rank,
        step: id,
        startUs: Math.round(from) / 1000,
        lengthMs: Math.round((to - from) / 1000) / 1000,
        shiftMs: Math.round((starts[k]! - first) / 1000) / 1000,
        lanes: lanes.map(({ lane, stream, slices }) => ({ lane, stream, count: slices.length, data: pack(slices, from, nameOf) })),
        names,
      });
    }
  }
  if (parts.length === 0) return null;
  const shown = { ranks: new Set(parts.map((p) => p.rank)).size, steps: new Set(parts.map((p) => p.step)).size };
  return { parts, leftOut: { ranks: job.ranks.length - shown.ranks, steps: Math.max(0, job.steps.usedIndex.length - shown.steps) } };
}
