/*
 * Simulated training jobs with known faults, written as Ascend PyTorch profiles.
 *
 * The analyser is tested against these: the true saving of a fault is the difference between the median step time of
 * the job with the fault and of the same job, same seed, with that one fault arranged right. Nothing here may import
 * from src, so that the two cannot share a mistake.
 */
export { type RankResult, type SimulatedJob, simulate, trueSavingMs, withoutFault } from './simulate.ts';
export type { CodeMap, CodeSite, Fault, FaultKind, JobSpec } from './spec.ts';
export { type Export, writeProfiles } from './write-profiles.ts';
