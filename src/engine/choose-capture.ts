import { leaf, parent } from '../importers/index.ts';
import type { InputRecord } from '../model/capture.ts';
import type { RankFacts } from '../model/facts.ts';
import type { L10n, Message } from '../model/lang.ts';

/** The ranks of one capture, and what was said about the others. */
export interface Chosen {
  readonly ranks: readonly RankFacts[];
  /** Files of captures that are not analysed, each with the reason. */
  readonly inputs: readonly InputRecord[];
  readonly notes: readonly Message[];
}

/** Parts of one program that are captured apart: the roles of reinforcement learning, the halves of serving. */
const ROLE = /(^|[^a-z])(actor|critic|ref|reference|rollout|reward|prefill|decode)([^a-z]|$)/i;
const MAX_NAMED = 8;

const OLDER: L10n = { en: 'a newer or more complete capture of the same rank is used', zh: '使用同一张卡更新或更完整的采集' };
const OTHER: L10n = {
  en: 'belongs to another capture; point at {folder:code} to analyse it',
  zh: '属于另一次采集；指定 {folder:code} 即可分析',
};

interface Capture {
  readonly folder: string;
  readonly ranks: RankFacts[];
}

/**
 * An upload may hold several captures: one per role of the program, or several runs. They are never mixed. The largest complete one is
 * analysed; inside it the newest complete folder of each rank counts.
 */
export function chooseCapture(all: readonly RankFacts[]): Chosen {
  const captures = capturesOf(all).sort((a, b) => compare(worth(b), worth(a)));
  const [best, ...others] = captures;
  if (best === undefined) return { ranks: [], inputs: [], notes: [] };
  const notes: Message[] = [];
  const { kept: newest, dropped } = newestPerRank(best.ranks, notes);
  const [own, ...strangers] = runsOf(newest);
  const kept = own?.ranks ?? [];
  others.push(...strangers);
  const apart = kept.filter((r) => isComplete(r) && !sharesSteps(r, kept[0]!));
  if (apart.length > 0) notes.push(otherSteps(apart));
  if (others.length > 0) notes.unshift(othersNote(strangers.length > 0 ? own! : best, others));
  const inputs = [
    ...dropped.flatMap((r) => ignored(r, { text: OLDER })),
    ...others.flatMap((c) => c.ranks.flatMap((r) => ignored(r, { text: OTHER, params: { folder: c.folder } }))),
  ];
  return { ranks: kept, inputs, notes };
}

function ignored(rank: RankFacts, note: Message): InputRecord[] {
  return rank.inputs.map((i) => (i.status === 'refused' ? i : { ...i, status: 'ignored', note }));
}

/** Clocks of the hosts of one job differ by less, us. */
const CLOCKS_APART = 1e6;

/**
 * Folders of one role belong together as long as no rank occurs in two of their parents: one parent per node or rank, else per run. Where
 * the ranks are unknown only the time tells: files recorded one after the other are runs, not ranks.
 */
function capturesOf(ranks: readonly RankFacts[]): Capture[] {
  const out: Capture[] = [];
  for (const role of Map.groupBy(ranks, (r) => roleOf(r.folder)).values()) {
    const captures: Capture[] = [];
    const parents = [...Map.groupBy(role, (r) => parent(r.folder))].sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [folder, all] of parents) {
      const parts = together(all);
      for (const own of parts) {
        const home = captures.find((c) => c.ranks.every((r) => own.every((o) => (r.rank === null || r.rank !== o.rank) && meet(r, o))));
        const label = parts.length > 1 ? own[0]!.folder : folder === '' ? '.' : folder;
        if (home === undefined) captures.push({ folder: label, ranks: [...own] });
        else home.ranks.push(...own);
      }
    }
    out.push(...captures);
  }
  return out;
}

/** The files of one folder, those of unknown rank by the time they were recorded. */
function together(ranks: readonly RankFacts[]): RankFacts[][] {
  const parts: RankFacts[][] = [];
  for (const rank of ranks) {
    const home = parts.find((part) => part.every((other) => meet(other, rank)));
    if (home === undefined) parts.push([rank]);
    else home.push(rank);
  }
  return parts;
}

/** Ranks that were uploaded as those of one job: some that no collective joins and that were recorded one after the other are of another run. */
function runsOf(ranks: readonly RankFacts[]): Capture[] {
  let runs: RankFacts[][] = [];
  for (const rank of ranks) {
    // Nearly always the first one that is asked was there at the same time.
    let keys: Set<string> | null = null;
    const isMet = (other: RankFacts): boolean => {
      if (!areApart(rank, other)) return true;
      keys ??= new Set(rank.collectives.map((c) => c.key));
      return other.collectives.some((c) => keys!.has(c.key));
    };
    // A rank may be what joins two groups that had nothing in common.
    const homes = runs.filter((run) => run.some(isMet));
    const [home, ...joined] = homes;
    if (home === undefined) runs.push([rank]);
    else {
      home.push(...joined.flat(), rank);
      runs = runs.filter((run) => !joined.includes(run));
    }
  }
  const place = new Map(ranks.map((rank, i) => [rank, i] as const));
  const inOrder = (own: RankFacts[]): RankFacts[] => own.sort((a, b) => place.get(a)! - place.get(b)!);
  return runs.map((own) => ({ folder: own[0]!.folder, ranks: inOrder(own) })).sort((a, b) => compare(worth(b), worth(a)));
}

/** Both take part in collectives, and the recording of one ended before that of the other began. */
function areApart(a: RankFacts, b: RankFacts): boolean {
  const [first, second] = [span(a), span(b)];
  if (a.collectives.length === 0 || b.collectives.length === 0 || first === null || second === null) return false;
  return first[0] > second[1] + CLOCKS_APART || second[0] > first[1] + CLOCKS_APART;
}

/** Of two ranks that are known nothing is asked. */
function meet(a: RankFacts, b: RankFacts): boolean {
  if (a.rank !== null && b.rank !== null) return true;
  const [first, second] = [span(a), span(b)];
  return first === null || second === null || (first[0] <= second[1] + CLOCKS_APART && second[0] <= first[1] + CLOCKS_APART);
}

/** First and last moment of the steps, else of the device or its collectives, us since the epoch; null when nothing has a place. */
function span(rank: RankFacts): readonly [number, number] | null {
  const marked = rank.steps.filter((s) => s.end > s.start);
  const placed = marked.length > 0 || rank.tape !== null ? marked : rank.collectives.filter((c) => c.end > c.start);
  const busy = rank.tape?.busy;
  if (placed.length === 0 && (busy === undefined || busy.start.length === 0)) return null;
  const start = placed.length > 0 ? placed.reduce((least, s) => Math.min(least, s.start), Number.POSITIVE_INFINITY) : busy!.start[0]!;
  const end = placed.length > 0 ? placed.reduce((most, s) => Math.max(most, s.end), Number.NEGATIVE_INFINITY) : busy!.end.at(-1)!;
  return [rank.originUs + start / 1000, rank.originUs + end / 1000];
}

/** The role that the path names, '' without one. The folder's own name holds the host's name and does not count. */
function roleOf(folder: string): string {
  const parts = folder.split('/');
  const named = /_ascend_(pt|ms)$/.test(leaf(folder)) ? parts.slice(0, -1) : parts;
  return named.filter((part) => ROLE.test(part)).join('/');
}

function isComplete(rank: RankFacts): boolean {
  return rank.tape !== null && rank.steps.length > 0;
}

/** Ranks with device work, then ranks, then bytes, then age. */
function worth(capture: Capture): readonly (number | string)[] {
  const ranks = new Set(capture.ranks.map((r) => r.rank ?? r.folder));
  const complete = new Set(capture.ranks.filter(isComplete).map((r) => r.rank ?? r.folder));
  const bytes = capture.ranks.reduce((sum, r) => sum + r.inputs.reduce((total, i) => total + i.bytes, 0), 0);
  const newest = capture.ranks.map(stamp).sort().at(-1) ?? '';
  return [complete.size, ranks.size, bytes, newest];
}

function compare(a: readonly (number | string)[], b: readonly (number | string)[]): number {
  for (const [i, value] of a.entries()) if (value !== b[i]) return value > b[i]! ? 1 : -1;
  return 0;
}

/** Time stamp at the end of a folder's name, '' without one. */
function stamp(rank: RankFacts): string {
  return /_(\d{14,17})(?:_ascend_(?:pt|ms))?$/.exec(rank.folder)?.[1] ?? '';
}

/** Ids of the captured steps: each trigger of dynamic profiling captures its own. */
function stepsOf(rank: RankFacts): string {
  return rank.steps.map((s) => s.id ?? '').join();
}

/** The steps that most ranks have a complete capture of; of several such, the newest. */
function commonSteps(ranks: readonly RankFacts[]): string {
  const sets = [...Map.groupBy(ranks.filter(isComplete), stepsOf)].map(([steps, own]) => {
    const newest = own.map(stamp).sort().at(-1) ?? '';
    return { steps, order: [new Set(own.map((r) => r.rank)).size, newest] };
  });
  return sets.sort((a, b) => compare(b.order, a.order))[0]?.steps ?? '';
}

/** Several folders of one rank: of those complete and of the steps that the other ranks hold, too, the newest. Without a time stamp, the last in name order. */
function newestPerRank(ranks: readonly RankFacts[], notes: Message[]): { kept: RankFacts[]; dropped: RankFacts[] } {
  const kept: RankFacts[] = [];
  const dropped: RankFacts[] = [];
  const steps = commonSteps(ranks);
  const order = (r: RankFacts): readonly (number | string)[] => [Number(isComplete(r)), Number(stepsOf(r) === steps), stamp(r), r.folder];
  for (const [rank, own] of Map.groupBy(ranks, (r) => r.rank)) {
    if (rank === null) {
      kept.push(...own);
      continue;
    }
    const [best, ...rest] = [...own].sort((a, b) => compare(order(b), order(a)));
    kept.push(best!);
    dropped.push(...rest);
    for (const other of rest.slice(0, MAX_NAMED)) {
      notes.push({
        text: {
          en: 'rank {rank:int} was captured more than once: {newer:code} is used, {older:code} is not',
          zh: '卡 {rank:int} 有多次采集：使用 {newer:code}，不使用 {older:code}',
        },
        params: { rank, newer: best!.folder, older: other.folder },
      });
    }
  }
  kept.sort((a, b) => (a.rank ?? Number.POSITIVE_INFINITY) - (b.rank ?? Number.POSITIVE_INFINITY));
  return { kept, dropped };
}

function sharesSteps(a: RankFacts, b: RankFacts): boolean {
  const known = new Set(a.steps.map((s) => s.id));
  return a.steps.length === 0 || b.steps.length === 0 || b.steps.some((s) => known.has(s.id));
}

function otherSteps(ranks: readonly RankFacts[]): Message {
  return {
    text: {
      en: 'Rank {ranks:ranks} was captured in other steps than the first rank: they cannot be compared step by step.',
      zh: '卡 {ranks:ranks} 与第一张卡采集的迭代不同：无法逐迭代比较。',
    },
    params: { ranks: ranks.map((r) => r.rank ?? -1) },
  };
}

function othersNote(best: Capture, others: readonly Capture[]): Message {
  return {
    text: {
      en: 'The upload holds {n:int} captures. {best:code} is analysed; point at one of {others:code} to analyse that.',
      zh: '上传中有 {n:int} 次采集。本次分析 {best:code}；如需分析其他，指定 {others:code} 之一。',
    },
    params: { n: others.length + 1, best: best.folder, others: others.slice(0, MAX_NAMED).map((c) => c.folder) },
  };
}
