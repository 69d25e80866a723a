import { matchesAny } from './glob.ts';
import type { Config } from './schema.ts';

/** One training job of a repository: the settings of the file, with what `jobs` says of it laid over. */
export interface JobSettings {
  /** Its name under `jobs`; null: the repository names no jobs and is one. */
  readonly name: string | null;
  /** Files it is made of; null: every pull request may change it. */
  readonly paths: readonly string[] | null;
  /** Runs of jobs with the same key are compared with each other; `jobKeyOf` has the default. */
  readonly baseline: string | null;
  /** What applies to it. `jobs` is null in here. */
  readonly config: Config;
}

/** The jobs of a repository, in the order of the file. Without `jobs` the repository is one job. */
export function jobsOf(config: Config): readonly JobSettings[] {
  if (config.jobs === null) return [{ name: null, paths: null, baseline: null, config }];
  return Object.entries(config.jobs).map(([name, { paths = null, baseline = null, ...own }]) => {
    const said = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
    const artifacts = [`ascend-profile-${name}*`, `npu-profile-${name}*`];
    // Which job a file, a release or an attachment belongs to only the job itself can say.
    const elsewhere = { files: [], release: null, attachments: false };
    return { name, paths, baseline, config: { ...config, ...elsewhere, artifacts, ...said, jobs: null } };
  });
}

/** Under which key the history of a job is kept within its repository. It survives a change of the job's name where `baseline` names it. */
export function jobKeyOf({ name, baseline }: Pick<JobSettings, 'name' | 'baseline'>): string {
  return baseline ?? name ?? 'default';
}

/** The jobs that a change of these files may concern. */
export function touchedJobs(jobs: readonly JobSettings[], changed: readonly string[]): readonly JobSettings[] {
  return jobs.filter(({ paths }) => paths === null || changed.some((path) => matchesAny(paths.map(folderPattern), path)));
}

/** `models/bert/` and `models/bert` mean everything in the folder, too. */
function folderPattern(pattern: string): string {
  return pattern.endsWith('/') ? `${pattern}*` : pattern;
}

/** The job an artifact belongs to: the one whose pattern says most of its name, so that `bert*` leaves `bert-large` to its own. null: none. */
export function jobOfArtifact(jobs: readonly JobSettings[], artifact: string): JobSettings | null {
  let best: JobSettings | null = null;
  let said = -1;
  for (const job of jobs) {
    for (const pattern of job.config.artifacts) {
      const length = pattern.replace(/[*?]/g, '').length;
      if (length <= said || !matchesAny([pattern], artifact)) continue;
      best = job;
      said = length;
    }
  }
  return best;
}

/** The id of a finding of a job: the same cause in two jobs is two findings. */
export function findingIdOf(id: string, job: string | null): string {
  return job === null ? id : `${id}.${job}`;
}

/** The job a finding belongs to by its id; null: the repository is one job. */
export function jobOfFinding(id: string): string | null {
  const dot = id.lastIndexOf('.');
  return dot < 0 ? null : id.slice(dot + 1);
}
