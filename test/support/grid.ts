/*
 * Simulated jobs with known faults, run through the analyser. The simulator says what a fault truly costs; the report has to
 * say the same. Used by the rule tests (a part of it) and by `npm run evaluate` (all of it).
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CARDS_PER_NODE } from '../../lab/simulator/groups.ts';
import { type Fault, type JobSpec, type SimulatedJob, simulate, withoutFault, writeProfiles } from '../../lab/simulator/index.ts';
import { analyse, type EngineOptions } from '../../src/engine/analyse.ts';
import type { Finding, Report } from '../../src/model/report.ts';
import { openSource } from '../../src/sources/index.ts';

/** One simulated job of the grid. */
export interface GridJob {
  readonly name: string;
  readonly spec: JobSpec;
  /** Findings that claim no time and still want a reader; nothing else may. */
  readonly warnings?: readonly Warning[];
}

export interface Warning {
  readonly rule: string;
  /** Global ranks where the cause sits; empty when the rule names none. */
  readonly ranks: readonly number[];
}

/** What the report must say about one fault. */
export interface Expectation {
  readonly fault: Fault;
  readonly rule: string;
  /** Global ranks where the cause sits; null when the rule names none. */
  readonly ranks: readonly number[] | null;
}

/** One fault of one job, measured. */
export interface Outcome {
  readonly expected: Expectation;
  readonly trueMs: number;
  readonly finding: Finding | null;
  readonly ranksRight: boolean;
  /** Headline (likely, else ceiling); null when nothing was found. */
  readonly headlineMs: number | null;
  /** Headline less truth, as a share of the truth. */
  readonly error: number | null;
}

export interface JobResult {
  readonly job: GridJob;
  readonly report: Report;
  readonly outcomes: readonly Outcome[];
  /** Findings that claim a saving and that no fault of the job explains. */
  readonly falseFindings: readonly Finding[];
  /** Everything that is wrong, one sentence each. */
  readonly complaints: readonly string[];
  /** Weaker promises about floor and ceiling that did not hold. */
  readonly remarks: readonly string[];
  readonly seconds: number;
}

export const DEFAULT_OPTIONS: EngineOptions = { lang: 'en', thresholds: {}, disabledRules: [], gate: null };
/** Promised accuracy of the headline saving. */
export const MAX_ERROR = 0.2;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Median step as the report counts it: the first of at least four captured steps is dropped. */
export function countedMedian(job: SimulatedJob): number {
  return median(job.stepTimesMs.length >= 4 ? job.stepTimesMs.slice(1) : job.stepTimesMs);
}

/** What the step would lose without this fault, all others still there. `withFault` saves simulating the job itself again. */
export function trueSaving(spec: JobSpec, fault: Fault, withFault?: number): number {
  const full = { ...spec, uploadedRanks: [] };
  return (withFault ?? countedMedian(simulate(full))) - countedMedian(simulate(withoutFault(full, fault)));
}

export function allRanks(spec: JobSpec): number[] {
  return Array.from({ length: spec.ranks }, (_, r) => r);
}

/** The host is held up while the device has work queued. */
const hidden = (fault: Fault): boolean => 'hidden' in fault && fault.hidden === true;

export function expectationOf(spec: JobSpec, fault: Fault): Expectation | null {
  const all = allRanks(spec);
  switch (fault.kind) {
    case 'slow-loader':
      return { fault, rule: 'dataloader-stall', ranks: fault.ranks ?? all };
    case 'hidden-loader':
    // Steps that are slow now and then do not move the median: nothing is claimed.
    case 'slow-steps':
      return null;
    case 'small-ops':
      return { fault, rule: 'small-op-fragmentation', ranks: all };
    case 'slow-rank':
    case 'slow-host':
      return { fault, rule: 'slow-rank', ranks: [fault.rank] };
    case 'stage-imbalance':
      return { fault, rule: 'stage-imbalance', ranks: all.slice(spec.ranks / 2) };
    case 'layout':
      return { fault, rule: 'transpose-hotspot', ranks: all };
    case 'recompile':
      return { fault, rule: 'op-recompile', ranks: all };
    case 'buffer-broadcast':
      return { fault, rule: 'ddp-buffer-broadcast', ranks: all };
    case 'sync-per-microstep':
      return { fault, rule: 'gradient-sync-per-microstep', ranks: all };
    case 'uneven-batches':
    case 'rotating-jitter':
      return { fault, rule: 'hccl-sync-wait', ranks: null };
    case 'slow-link':
      // The only link of two ranks has none to be compared with.
      return spec.ranks < 3 ? null : { fault, rule: 'slow-link', ranks: fault.ranks };
    case 'small-messages':
      return { fault, rule: 'hccl-small-packet', ranks: all };
    case 'no-overlap':
      return { fault, rule: 'no-overlap', ranks: all };
    case 'few-micro-batches':
      return { fault, rule: 'pipeline-bubble', ranks: all };
    case 'expert-imbalance':
      return { fault, rule: 'expert-imbalance', ranks: fault.rank === undefined ? all : [fault.rank] };
    case 'contention':
      return { fault, rule: 'bandwidth-contention', ranks: all };
    case 'stream-sync':
    case 'launch-blocking':
      return hidden(fault) ? null : { fault, rule: 'stream-sync', ranks: all };
    case 'gc-pause':
      // Without the lane of the collector nothing names the cause.
      return hidden(fault) || fault.lane === false ? null : { fault, rule: 'gc-pause', ranks: all };
    case 'alloc-stall':
      return hidden(fault) ? null : { fault, rule: 'memory-alloc-stall', ranks: all };
    case 'batch-preparation':
      return hidden(fault) || fault.shows === 'nothing' ? null : { fault, rule: 'batch-preparation', ranks: all };
    case 'pageable-copy':
      return hidden(fault) ? null : { fault, rule: 'h2d-copy', ranks: all };
    case 'host-bound':
      return hidden(fault) ? null : { fault, rule: 'host-bound-launch', ranks: all };
    case 'aicpu-op':
      return { fault, rule: 'aicpu-op', ranks: all };
    case 'cast-pair':
      return fault.used === true ? null : { fault, rule: 'cast-churn', ranks: all };
    case 'weight-cast':
      return { fault, rule: 'cast-churn', ranks: all };
    case 'vector-chain':
      return { fault, rule: 'vector-bound', ranks: all };
    case 'few-blocks':
      return { fault, rule: 'block-dim', ranks: all };
    case 'loose-matmul':
      return { fault, rule: 'cube-utilisation', ranks: all };
    case 'idle-pipes':
      return null;
    case 'frequency-drop':
      // With every card slow nothing in the capture tells what the clock should be.
      return fault.idle === true || (fault.ranks ?? all).length === spec.ranks
        ? null
        : { fault, rule: 'frequency-drop', ranks: fault.ranks ?? all };
    case 'unfused':
      return { fault, rule: 'affinity-api', ranks: all };
    case 'elementwise-chain':
      return { fault, rule: 'fusible-sequence', ranks: all };
    case 'unfused-optimizer':
    case 'zero-fill':
      return { fault, rule: 'unfused-optimizer', ranks: all };
    case 'look-alike':
      return null;
  }
}

/** Analyses folders already on disk. */
export async function analysePaths(paths: readonly string[], options: Partial<EngineOptions> = {}): Promise<Report> {
  const sources = await Promise.all(paths.map((path) => openSource(path)));
  try {
    return await analyse({ sources, options: { ...DEFAULT_OPTIONS, ...options }, source: null });
  } finally {
    for (const source of sources) await source.close();
  }
}

/** Writes a job below a temporary folder that is gone when `use` has returned. */
export async function withWrittenJob<T>(spec: JobSpec, use: (dir: string, job: SimulatedJob) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'npu-advisor-grid-'));
  try {
    const job = simulate(spec);
    await writeProfiles(job, dir);
    return await use(dir, job);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

export function claims(report: Report): Finding[] {
  return report.findings.filter((f) => {
    if (f.saving === null || f.symptomOf !== null) return false;
    return (f.saving.perStepMs.likely ?? f.saving.perStepMs.ceiling) > 0;
  });
}

export function headlineOf(finding: Finding): number {
  return finding.saving === null ? 0 : (finding.saving.perStepMs.likely ?? finding.saving.perStepMs.ceiling);
}

/** True saving from which a fault has to be found, ms: 1 % of the step, never below the reporting floor. */
export function smallestReported(report: Report): number {
  return Math.max(0.5, 2 * (report.job.stepNoiseMs ?? 0), 0.01 * (report.job.stepTimeMs ?? 0));
}

function sameRanks(a: readonly number[], b: readonly number[]): boolean {
  return JSON.stringify([...a].sort((x, y) => x - y)) === JSON.stringify([...b].sort((x, y) => x - y));
}

function findingOf(claimed: readonly Finding[], e: Expectation): Finding | null {
  return claimed.find((f) => f.rule === e.rule && (e.rule !== 'slow-rank' || f.ranks.includes(e.ranks![0]!))) ?? null;
}

/** What the step would lose without this fault once those that hide it are gone. */
function trueUnmasked(
  spec: JobSpec,
  of: Expectation,
  finding: Finding,
  expected: readonly Expectation[],
  claimed: readonly Finding[],
): number {
  const isMask = (e: Expectation): boolean => e !== of && finding.maskedBy!.includes(findingOf(claimed, e)?.id ?? '');
  const without = expected.filter(isMask).reduce((rest, e) => withoutFault(rest, e.fault), spec);
  return trueSaving(without, of.fault);
}

/** Simulates, writes, analyses and judges one job. */
export async function evaluateJob(job: GridJob): Promise<JobResult> {
  const begin = performance.now();
  const { report, stepMs } = await withWrittenJob(job.spec, async (dir, run) => ({
    report: await analysePaths([dir]),
    stepMs: countedMedian(run),
  }));
  const faults = (job.spec.faults ?? []).filter((f) => f.off !== true);
  const expected = faults.map((f) => expectationOf(job.spec, f)).filter((e): e is Expectation => e !== null);
  const claimed = claims(report);
  const complaints: string[] = [];
  const remarks: string[] = [];
  const outcomes = expected.map((e): Outcome => {
    const finding = findingOf(claimed, e);
    const trueMs =
      finding?.maskedBy === undefined ? trueSaving(job.spec, e.fault, stepMs) : trueUnmasked(job.spec, e, finding, expected, claimed);
    if (finding === null) {
      // Too small to be worth a line: staying silent is right.
      if (trueMs < smallestReported(report)) return { expected: e, trueMs, finding, ranksRight: true, headlineMs: null, error: null };
      complaints.push(`${e.fault.kind} is missed (true ${trueMs.toFixed(1)} ms)`);
      return { expected: e, trueMs, finding, ranksRight: false, headlineMs: null, error: null };
    }
    const ranksRight = sameRanks(finding.ranks, e.ranks ?? []);
    if (!ranksRight) complaints.push(`${e.fault.kind} is put on ranks ${finding.ranks.join(',')} instead of ${(e.ranks ?? []).join(',')}`);
    const headlineMs = headlineOf(finding);
    const error = (headlineMs - trueMs) / trueMs;
    if (Math.abs(error) > MAX_ERROR)
      complaints.push(
        `${e.fault.kind}: headline ${headlineMs.toFixed(1)} ms, true ${trueMs.toFixed(1)} ms (${(error * 100).toFixed(0)} %)`,
      );
    const { floor, ceiling } = finding.saving!.perStepMs;
    if (floor > trueMs * 1.05) remarks.push(`${e.fault.kind}: floor ${floor.toFixed(1)} ms is above the true ${trueMs.toFixed(1)} ms`);
    if (ceiling < trueMs * 0.9) remarks.push(`${e.fault.kind}: ceiling ${ceiling.toFixed(1)} ms is below the true ${trueMs.toFixed(1)} ms`);
    return { expected: e, trueMs, finding, ranksRight, headlineMs, error };
  });
  const falseFindings = claimed.filter((f) => !outcomes.some((o) => o.finding === f));
  for (const f of falseFindings) complaints.push(`false finding ${f.rule} of ${headlineOf(f).toFixed(1)} ms: ${f.title}`);
  complaints.push(...totalsComplaints(report), ...warningComplaints(job, report));
  return { job, report, outcomes, falseFindings, complaints, remarks, seconds: (performance.now() - begin) / 1000 };
}

/** Findings without a saving: each that is expected, on its ranks, and no other. */
function warningComplaints(job: GridJob, report: Report): string[] {
  const found = report.findings.filter((f) => f.saving === null && f.symptomOf === null && f.severity !== 'info');
  const expected = job.warnings ?? [];
  return [
    ...expected
      .filter((w) => !found.some((f) => f.rule === w.rule && sameRanks(f.ranks, w.ranks)))
      .map((w) => `${w.rule} is not reported on ranks ${w.ranks.join(',')}`),
    ...found.filter((f) => !expected.some((w) => w.rule === f.rule)).map((f) => `false warning ${f.rule}: ${f.title}`),
  ];
}

/** What the totals of any report must keep. */
export function totalsComplaints(report: Report): string[] {
  const out: string[] = [];
  const step = report.job.stepTimeMs;
  const { likely, ceiling } = report.totals.claimedMsPerStep;
  const parts = claims(report)
    .map((f) => f.saving!.perStepMs.likely ?? 0)
    .reduce((a, b) => a + b, 0);
  if (likely !== null && step !== null && likely > step) out.push(`the total ${likely} ms is above the step ${step} ms`);
  if (step !== null && ceiling > step) out.push(`the total ceiling ${ceiling} ms is above the step ${step} ms`);
  if (likely !== null && likely > parts * 1.01 + 0.01) out.push(`the total ${likely} ms is above the sum of its parts ${parts} ms`);
  for (const f of claims(report)) {
    const s = f.saving!.perStepMs;
    if (s.floor > (s.likely ?? s.ceiling) + 1e-6 || (s.likely ?? 0) > s.ceiling + 1e-6)
      out.push(`${f.rule}: floor ≤ likely ≤ ceiling does not hold`);
    if (step !== null && s.ceiling > step + 1e-6) out.push(`${f.rule}: the ceiling is above the step`);
  }
  return out;
}

/** Every core fault of a data-parallel job by itself. */
export function singleFaults(ranks: number): Fault[] {
  const late = Math.min(ranks - 1, 3);
  return [
    { kind: 'slow-loader' },
    { kind: 'slow-loader', ranks: [late] },
    { kind: 'slow-loader', single: true },
    { kind: 'small-ops', where: 'optimizer' },
    { kind: 'small-ops', where: 'forward' },
    { kind: 'slow-rank', rank: late },
    { kind: 'slow-host', rank: late },
    { kind: 'layout' },
    { kind: 'recompile' },
    { kind: 'buffer-broadcast' },
    { kind: 'sync-per-microstep' },
    { kind: 'rotating-jitter' },
    { kind: 'uneven-batches' },
    ...hostFaults(),
    ...computeFaults(ranks),
    ...communicationFaults(ranks),
    ...fusionFaults(),
  ];
}

/** What is written out although one kernel computes it, and what only looks like it. */
export function fusionFaults(): Fault[] {
  return [
    { kind: 'unfused', of: 'rms-norm' },
    { kind: 'unfused', of: 'swiglu' },
    { kind: 'unfused', of: 'gelu' },
    { kind: 'unfused', of: 'rotary' },
    { kind: 'unfused', of: 'attention' },
    { kind: 'unfused', of: 'masked-softmax' },
    { kind: 'unfused', of: 'expert-loop' },
    { kind: 'unfused', of: 'transposed-product' },
    { kind: 'elementwise-chain' },
    { kind: 'unfused-optimizer' },
    { kind: 'unfused-optimizer', how: 'loop' },
    { kind: 'zero-fill' },
    { kind: 'look-alike' },
  ];
}

/** What slows the collectives, and small messages that computing hides. */
export function communicationFaults(ranks: number): Fault[] {
  return [
    { kind: 'slow-link', ranks: ranks > 2 ? [1, 2] : [0, 1] },
    ...(ranks > CARDS_PER_NODE ? [{ kind: 'slow-link' as const, ranks: [1, 1 + CARDS_PER_NODE] as [number, number] }] : []),
    { kind: 'small-messages' },
    { kind: 'small-messages', where: 'gradients', count: 16 },
    { kind: 'small-messages', where: 'gradients', count: 4 },
    { kind: 'no-overlap' },
    { kind: 'expert-imbalance' },
    { kind: 'expert-imbalance', rank: ranks - 1 },
    { kind: 'contention' },
  ];
}

/** What slows the kernels themselves, and what only looks like it. */
export function computeFaults(ranks: number): Fault[] {
  const late = Math.min(ranks - 1, 3);
  return [
    { kind: 'aicpu-op' },
    { kind: 'aicpu-op', of: 'index' },
    { kind: 'cast-pair' },
    { kind: 'cast-pair', used: true },
    { kind: 'weight-cast' },
    { kind: 'vector-chain' },
    { kind: 'few-blocks' },
    { kind: 'loose-matmul' },
    { kind: 'idle-pipes' },
    { kind: 'frequency-drop', ranks: [late] },
    { kind: 'frequency-drop', ranks: [late], idle: true },
  ];
}

/** What holds up the host, and the same hidden behind queued work. */
export function hostFaults(): Fault[] {
  return [
    { kind: 'stream-sync' },
    { kind: 'stream-sync', of: 'nonzero' },
    { kind: 'stream-sync', of: 'device' },
    { kind: 'stream-sync', of: 'collective' },
    { kind: 'stream-sync', hidden: true },
    { kind: 'launch-blocking' },
    { kind: 'gc-pause' },
    { kind: 'gc-pause', hidden: true },
    { kind: 'alloc-stall' },
    { kind: 'alloc-stall', emptyCache: true },
    { kind: 'alloc-stall', hidden: true },
    { kind: 'batch-preparation' },
    { kind: 'batch-preparation', shows: 'frames' },
    { kind: 'batch-preparation', hidden: true },
    { kind: 'pageable-copy' },
    { kind: 'pageable-copy', hidden: true },
    { kind: 'host-bound' },
    { kind: 'host-bound', factor: 1.4, hidden: true },
  ];
}

/** Every fault a pipeline job can have. */
export function pipelineFaults(ranks: number): Fault[] {
  return [
    { kind: 'stage-imbalance' },
    { kind: 'few-micro-batches' },
    { kind: 'slow-loader' },
    { kind: 'small-ops', where: 'optimizer' },
    { kind: 'small-ops', where: 'forward' },
    { kind: 'slow-rank', rank: ranks - 1 },
    { kind: 'layout' },
    { kind: 'recompile' },
  ];
}

export function pairs(ranks: number): { pp: 1 | 2; faults: [Fault, Fault] }[] {
  const late = Math.min(ranks - 1, 3);
  return [
    { pp: 1, faults: [{ kind: 'slow-rank', rank: late }, { kind: 'small-ops' }] },
    { pp: 1, faults: [{ kind: 'layout' }, { kind: 'recompile' }] },
    { pp: 1, faults: [{ kind: 'slow-loader', single: true }, { kind: 'buffer-broadcast' }] },
    { pp: 1, faults: [{ kind: 'sync-per-microstep' }, { kind: 'buffer-broadcast' }] },
    // Slow enough to set the pace with either fault, so that the layout saves nothing.
    { pp: 1, faults: [{ kind: 'slow-loader', sampleMs: 450 }, { kind: 'layout' }] },
    { pp: 1, faults: [{ kind: 'small-ops' }, { kind: 'recompile' }] },
    { pp: 1, faults: [{ kind: 'slow-rank', rank: 0 }, { kind: 'buffer-broadcast' }] },
    { pp: 1, faults: [{ kind: 'small-ops' }, { kind: 'layout' }] },
    { pp: 1, faults: [{ kind: 'sync-per-microstep' }, { kind: 'recompile' }] },
    { pp: 2, faults: [{ kind: 'stage-imbalance' }, { kind: 'recompile' }] },
    { pp: 2, faults: [{ kind: 'stage-imbalance' }, { kind: 'layout' }] },
    { pp: 2, faults: [{ kind: 'layout' }, { kind: 'small-ops' }] },
    { pp: 1, faults: [{ kind: 'aicpu-op' }, { kind: 'cast-pair' }] },
    { pp: 1, faults: [{ kind: 'unfused', of: 'rms-norm' }, { kind: 'unfused-optimizer' }] },
    // The loader sets the pace, so that the formula costs nothing.
    {
      pp: 1,
      faults: [
        { kind: 'slow-loader', sampleMs: 450 },
        { kind: 'unfused', of: 'swiglu' },
      ],
    },
    { pp: 1, faults: [{ kind: 'frequency-drop', ranks: [late] }, { kind: 'small-ops' }] },
  ];
}

/** Memory, settings and single steps: nothing of it moves the median step. */
export function savingless(ranks: number): GridJob[] {
  const all = Array.from({ length: ranks }, (_, r) => r);
  const last = ranks - 1;
  const card = { ranks, steps: 6 } as const;
  const deviceGb = 32;
  const of = (name: string, spec: JobSpec, rule: string | null, on: readonly number[] = all): GridJob => ({
    name: `${ranks}r no saving: ${name}`,
    spec,
    ...(rule === null ? {} : { warnings: [{ rule, ranks: on }] }),
  });
  return [
    of('memory at rest', { ...card, memory: { deviceGb } }, null),
    of('memory grows', { ...card, memory: { deviceGb, growMb: 48 } }, 'memory-growth'),
    of('optimizer state in the first step', { ...card, memory: { deviceGb, stateInFirstStep: true } }, null),
    of('memory in pieces', { ...card, memory: { deviceGb, splinterMb: 512, unusedGb: 2 } }, 'memory-fragmentation'),
    of('a large cache with room', { ...card, memory: { deviceGb, unusedGb: 8 } }, null),
    of('card full', { ...card, memory: { deviceGb, baseGb: 23, unusedGb: 0.1 } }, 'memory-peak'),
    of('one rank with another setting', { ranks, envOfRank: { [last]: { HCCL_RDMA_TC: '136' } } }, 'environment', ranks > 2 ? [last] : []),
    of('log level without launch gaps', { ranks, env: { ASCEND_GLOBAL_LOG_LEVEL: '1' } }, null),
    of('log level with launch gaps', { ranks, env: { ASCEND_GLOBAL_LOG_LEVEL: '1' }, faults: [{ kind: 'small-ops' }] }, 'environment'),
    of('torch of another release', { ranks, versions: { torch: '2.6.0', torchNpu: '2.7.1', cann: '8.3.RC1' } }, 'version-mismatch', []),
    of(
      'one rank with another CANN',
      { ranks, versionsOfRank: { [last]: { cann: '8.0.RC3' } } },
      'version-mismatch',
      ranks > 2 ? [last] : [],
    ),
    of('a pause in one step', { ranks, steps: 6, faults: [{ kind: 'slow-steps', steps: [3], rank: last, ms: 60 }] }, 'step-jitter', [last]),
    of(
      'a slow fetch in one step',
      { ranks, steps: 6, faults: [{ kind: 'slow-steps', steps: [3], cause: 'fetch', rank: last, ms: 60 }] },
      'step-jitter',
      [last],
    ),
    of(
      'slow collectives in one step',
      { ranks, steps: 6, faults: [{ kind: 'slow-steps', steps: [3], cause: 'collective' }] },
      'step-jitter',
      [],
    ),
  ];
}

export function nameOf(spec: JobSpec): string {
  const faults = (spec.faults ?? []).map((f) => {
    const { kind, ...rest } = f;
    const detail = Object.entries(rest).map(([k, v]) => `${k}=${Array.isArray(v) ? v.join('+') : v}`);
    return detail.length === 0 ? kind : `${kind}(${detail.join(' ')})`;
  });
  return `${spec.ranks}r${spec.pp === 2 ? ' pp2' : ''} ${faults.length === 0 ? 'healthy' : faults.join(' + ')}`;
}

const job = (spec: JobSpec): GridJob => ({ name: nameOf(spec), spec });

/** The whole grid, cheap jobs first within each group. */
export function grid(ranks: readonly number[]): GridJob[] {
  const jobs: GridJob[] = [];
  for (const n of ranks) {
    jobs.push(job({ ranks: n }), job({ ranks: n, pp: 2 }), job({ ranks: n, faults: [{ kind: 'hidden-loader' }] }));
    for (const fault of singleFaults(n)) jobs.push(job({ ranks: n, faults: [fault] }));
    for (const fault of pipelineFaults(n)) jobs.push(job({ ranks: n, pp: 2, faults: [fault] }));
    for (const pair of pairs(n)) jobs.push(job({ ranks: n, pp: pair.pp, faults: pair.faults }));
    jobs.push(...savingless(n));
  }
  return jobs;
}
