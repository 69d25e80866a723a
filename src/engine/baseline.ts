import { AdviseError } from '../base/errors.ts';
import { comparability, pairRanks } from '../compare/comparability.ts';
import { compareWithGpu } from '../compare/gpu.ts';
import { type BaselineRun, compareJobs, type Limits, middleRun } from '../compare/index.ts';
import type { GivenBatch } from '../facts/job/batch.ts';
import { type JobFacts, jobFacts } from '../facts/job/index.ts';
import { readGpuTrace } from '../importers/gpu-trace/index.ts';
import { findCaptures } from '../importers/index.ts';
import type { JobComparison } from '../model/comparison.ts';
import type { GpuFacts } from '../model/gpu-facts.ts';
import type { ProfileSource } from '../sources/source.ts';
import { collectRanks } from './collect-ranks.ts';

/** One run to compare with, as sources that are opened and closed by the caller. Several are repeats of the same unchanged job. */
export interface BaselineSource {
  readonly label: string;
  readonly sources: readonly ProfileSource[];
  /** Nobody asked for this very run: it is left out when it cannot be compared and another can. */
  readonly isOneOfMany?: boolean;
}

/** A baseline that was read. */
export interface Baseline {
  compare(job: JobFacts, limits: Limits): JobComparison;
  /** Its run that stands for the others; null for a GPU, of which there is nothing to diagnose. */
  readonly job: JobFacts | null;
}

interface ReadOptions {
  readonly batch: GivenBatch | null;
  readonly signal: AbortSignal | undefined;
}

/** GPU traces of one job that are read; each may hold a gigabyte. */
const MAX_TRACES = 64;

/** Reads every run down to its facts. Throws AdviseError that names the run when there is nothing to compare with. */
export async function readBaseline(given: readonly BaselineSource[], options: ReadOptions): Promise<Baseline> {
  const runs: (BaselineRun & { readonly isOneOfMany: boolean })[] = [];
  const traces: GpuFacts[] = [];
  for (const { label, sources, isOneOfMany = false } of given) {
    try {
      const own = await gpuTraces(sources, options.signal);
      if (own.length > 0) traces.push(...own);
      else runs.push({ label, job: await jobOf(sources, options), isOneOfMany });
    } catch (error) {
      if (!(error instanceof AdviseError)) throw error;
      const { en, zh } = error.told;
      const told = {
        en: { ...en, message: `baseline ${label}: ${en.message}` },
        zh: { ...zh, message: `基线 ${label}：${zh.message}` },
      };
      throw AdviseError.from(error.code, told, { cause: error });
    }
  }
  if (runs.length === 0) {
    const label = given[0]!.label;
    return { job: null, compare: (job) => compareWithGpu(job, label, traces) };
  }
  const fitting = (job: JobFacts): readonly BaselineRun[] => {
    const those = runs.filter((run) => !run.isOneOfMany || comparability(job, run.job, pairRanks(job, run.job)).refusals.length === 0);
    return those.length === 0 ? runs : those;
  };
  return { job: middleRun(runs).job, compare: (job, limits) => compareJobs(job, fitting(job), limits) };
}

async function jobOf(sources: readonly ProfileSource[], { batch, signal }: ReadOptions): Promise<JobFacts> {
  const { ranks, otherRanks } = await collectRanks(sources, { onBytes: () => {}, signal });
  return jobFacts(ranks, otherRanks, { batch });
}

/** Traces of a GPU, when the upload holds those and no Ascend profile. */
async function gpuTraces(sources: readonly ProfileSource[], signal: AbortSignal | undefined): Promise<GpuFacts[]> {
  const found = await Promise.all(sources.map((source) => findCaptures(source.entries)));
  if (found.some((f) => f.folders.length > 0 || f.clusters.length > 0)) return [];
  const out: GpuFacts[] = [];
  for (const entry of found.flatMap((f) => f.gpu).slice(0, MAX_TRACES)) {
    signal?.throwIfAborted();
    out.push(await readGpuTrace(entry));
  }
  return out;
}
