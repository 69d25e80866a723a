import { begin, end, phase, type Rank, spend } from './des.ts';
import type { LoaderPlan } from './plan.ts';
import { jitter } from './random.ts';
import { stackKey } from './stacks.ts';

/** A DataLoader of one rank: workers prefetch two batches each, the main process takes them in order. */
export interface Loader {
  plan: LoaderPlan;
  workerFree: number[];
  ready: number[];
  /** batches taken so far */
  taken: number;
}

/** Batches a worker may have prefetched. */
const PREFETCH = 2;

export function createLoader(plan: LoaderPlan, rank: Rank): Loader {
  const loader: Loader = { plan, workerFree: [], ready: [], taken: 0 };
  // workers are forked one after the other, so their batches arrive spread over one batch time
  for (let w = 0; w < plan.workers; w++) loader.workerFree.push(Math.round((w * plan.sampleUs * 1000) / plan.workers));
  for (let b = 0; b < plan.workers * PREFETCH; b++) request(loader, rank, b, 0);
  return loader;
}

function sampleNs(loader: Loader, rank: Rank, batch: number): number {
  return Math.round(loader.plan.sampleUs * 1000 * jitter(0.005, rank.seed, rank.rank, batch, 31));
}

function request(loader: Loader, rank: Rank, batch: number, at: number): void {
  const worker = batch % loader.plan.workers;
  const start = Math.max(loader.workerFree[worker] ?? 0, at);
  const ready = start + sampleNs(loader, rank, batch);
  loader.workerFree[worker] = ready;
  loader.ready[batch] = ready;
}

/** Takes the next batch on the main thread. */
export function fetch(loader: Loader, rank: Rank): void {
  phase(rank, `fetch${loader.taken}`);
  const { plan } = loader;
  const iterator = plan.workers === 0 ? '_SingleProcessDataLoaderIter' : '_MultiProcessingDataLoaderIter';
  const op = begin(rank, `enumerate(DataLoader)#${iterator}.__next__`, { stack: stackKey('loader') });
  const batch = loader.taken++;
  if (plan.workers === 0) {
    rank.now += sampleNs(loader, rank, batch);
  } else {
    rank.now = Math.max(rank.now, loader.ready[batch]!);
    request(loader, rank, batch + plan.workers * PREFETCH, rank.now);
  }
  spend(rank, plan.fetchUs);
  rank.now += Math.round(plan.extraUs(rank.step) * 1000);
  end(rank, op);
}
