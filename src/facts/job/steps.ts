import { mad, median } from '../../base/statistics.ts';
import { COMPUTE, type RankFacts } from '../../model/facts.ts';

/** The job's steps over all ranks: which are used, which are dropped and why, and how long one takes. ms. */
export interface JobSteps {
  /** Ids of the steps used; without step marks the capture is one span without an id, and the list is empty. */
  readonly used: readonly number[];
  /** Indices into each rank's `steps` of the used steps. */
  readonly usedIndex: readonly number[];
  readonly dropped: readonly { step: number; why: 'first' | 'slow' | 'cut'; ms: number; medianMs: number }[];
  readonly stepTimeMs: number | null;
  readonly basis: 'distance' | 'host-step' | 'device-span' | 'none';
  readonly noiseMs: number | null;
  /** Rank index that sets the pace: the longest step, and of those as long the one that waits least for others. */
  readonly pace: number;
  /** Step time by used step, slowest rank. */
  readonly perStepMs: readonly number[];
}

const DROP_AT = 4;
/** Reports tell µs: what is shorter is no step, ms. */
const SHORTEST_MS = 0.001;
/** Steps that differ by less are equally long. */
const AS_LONG = 0.995;
const MAD_FACTOR = 3 * 1.4826;

export function jobSteps(ranks: readonly RankFacts[]): JobSteps {
  const withMarks = ranks.filter((r) => r.capabilities.has('steps'));
  const source = withMarks.length > 0 ? withMarks : ranks.filter((r) => r.steps.length > 0);
  if (source.length === 0)
    return { used: [], usedIndex: [], dropped: [], stepTimeMs: null, basis: 'none', noiseMs: null, pace: 0, perStepMs: [] };
  const count = Math.min(...source.map((r) => r.steps.length));
  const marked = withMarks.length > 0;
  const value = (rank: RankFacts, s: number): number => {
    const b = rank.steps[s]!.breakdown;
    return marked ? b.stepMs : b.stageMs + (Number.isNaN(b.bubbleMs) ? 0 : b.bubbleMs);
  };
  const times: number[] = [];
  for (let s = 0; s < count; s++) {
    const known = source.map((r) => value(r, s)).filter((v) => !Number.isNaN(v));
    times.push(known.length === 0 ? Number.NaN : Math.max(...known));
  }
  const dropped: JobSteps['dropped'][number][] = [];
  const keep = new Set(times.keys());
  const id = (s: number): number => source[0]!.steps[s]!.id ?? s;
  if (count > 1) {
    const others = times.slice(1).filter((v) => !Number.isNaN(v));
    const middle = median(others);
    if (count >= DROP_AT) {
      keep.delete(0);
      dropped.push({ step: id(0), why: 'first', ms: times[0]!, medianMs: middle });
    } else if (count >= 3 && times[0]! > middle + MAD_FACTOR * mad(others) && times[0]! > middle * 1.05) {
      keep.delete(0);
      dropped.push({ step: id(0), why: 'slow', ms: times[0]!, medianMs: middle });
    }
  }
  const last = count - 1;
  if (keep.size > 1 && keep.has(last) && isCut(source, last)) {
    keep.delete(last);
    dropped.push({ step: id(last), why: 'cut', ms: times[last]!, medianMs: median([...keep].map((s) => times[s]!)) });
  }
  const usedIndex = [...keep];
  const perStepMs = usedIndex.map((s) => times[s]!).filter((v) => !Number.isNaN(v));
  const stepTimeMs = median(perStepMs);
  const medians = ranks.map((r) =>
    median(usedIndex.map((s) => (r.steps[s] === undefined ? Number.NaN : value(r, s))).filter((v) => !Number.isNaN(v))),
  );
  const longest = Math.max(...medians.filter((m) => !Number.isNaN(m)));
  const waits = ranks.map((r) =>
    median(usedIndex.map((s) => r.steps[s]?.breakdown.exposedMs ?? Number.NaN).filter((v) => !Number.isNaN(v))),
  );
  // Ranks that meet in every step have steps of one length: the one that waits least for the others is the one they wait for.
  const slowest = [...medians.keys()].filter((i) => medians[i]! >= longest * AS_LONG);
  const pace = slowest.reduce((best, i) => ((waits[i] ?? 0) < (waits[best] ?? 0) ? i : best), slowest[0] ?? 0);
  return {
    used: usedIndex.map((s) => source[0]!.steps[s]!.id).filter((step) => step !== null),
    usedIndex,
    dropped,
    stepTimeMs: stepTimeMs >= SHORTEST_MS ? stepTimeMs : null,
    basis: marked ? (count > 1 ? 'distance' : 'host-step') : 'device-span',
    noiseMs: perStepMs.length > 1 ? mad(perStepMs) : null,
    pace,
    perStepMs,
  };
}

/** A whole step launches nearly as many kernels as the others. */
const WHOLE = 0.9;

/** Without any other sign a step must hold far less than the others, which agree, to be taken for a cut one. */
const FAR_LESS = 0.5;
const AGREE = 0.1;

/**
 * The profiler was stopped while it recorded: its log says so; or the last step holds less work than the others and its schedule asks for
 * more steps, or a file ends early; or it holds far less than others that agree, as after a last `prof.step()`.
 */
function isCut(ranks: readonly RankFacts[], last: number): boolean {
  return ranks.some((rank) => {
    if (rank.steps.length !== last + 1 || rank.capabilities.has('steps') === false) return false;
    if (rank.settings.stopped === 'RECORD') return true;
    if (rank.tape === null) return false;
    const kernels = new Array<number>(last + 1).fill(0);
    for (let i = 0; i < rank.tape.step.length; i++) {
      const step = rank.tape.step[i]!;
      if (rank.tape.kind[i] === COMPUTE && step >= 0 && step <= last) kernels[step] = kernels[step]! + 1;
    }
    const others = kernels.slice(0, last);
    const usual = median(others);
    const isExpected = (rank.settings.schedule?.active ?? 0) > rank.steps.length || rank.damage.length > 0;
    if (isExpected && kernels[last]! < WHOLE * usual) return true;
    return others.length >= 2 && mad(others) <= AGREE * usual && kernels[last]! < FAR_LESS * usual;
  });
}
