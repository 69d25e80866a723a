export { median, type RankResult, type SimulatedJob, simulate, trueSavingMs, withoutFault } from './simulate.ts';
export { type CodeMap, type CodeSite, DEFAULT_CODE, type Fault, type FaultKind, type JobSpec } from './spec.ts';
export { writeProfiles } from './write-profiles.ts';
