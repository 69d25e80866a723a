import type { Artifact } from '../../github/artifacts.ts';

/** Uploads that may hold the profile of a commit. */
export interface Candidate {
  /** The run that made them; number 0: no run did. */
  readonly run: { readonly id: number; readonly headSha: string; readonly name: string; readonly htmlUrl: string | null };
  readonly artifacts: readonly Artifact[];
  /** Names of everything the run uploaded. */
  readonly uploaded: readonly string[];
}

/** Whether nothing but the word of a person binds it to the commit. */
export function isAttached({ artifacts }: Pick<Candidate, 'artifacts'>): boolean {
  return artifacts.some(({ place }) => place?.kind === 'attachment');
}
