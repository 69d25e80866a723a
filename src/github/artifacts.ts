import { matchesAny } from '../config/glob.ts';
import type { Octokit, RepositoryRef } from './client.ts';

/** A workflow artifact, as far as we use it. `digest` and `workflowRun` are missing on some servers. */
export interface Artifact {
  readonly id: number;
  readonly name: string;
  readonly bytes: number;
  readonly expired: boolean;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly digest: string | null;
  readonly headSha: string | null;
  readonly runId: number | null;
  /** Where the bytes lie when it is no workflow artifact. */
  readonly place?: Place;
}

/** An upload that no run made. Its bytes are found through GitHub all the same, and fetched without a token. */
export type Place =
  | { readonly kind: 'asset' }
  | { readonly kind: 'file'; readonly path: string; readonly ref: string }
  | { readonly kind: 'attachment'; readonly url: string };

const MAX_LISTED = 2000;

/** All artifacts of a run. */
export async function listArtifacts(octokit: Octokit, repository: RepositoryRef, runId: number): Promise<Artifact[]> {
  const artifacts: Artifact[] = [];
  const pages = octokit.paginate.iterator('GET /repos/{owner}/{repo}/actions/runs/{run_id}/artifacts', {
    owner: repository.owner,
    repo: repository.name,
    run_id: runId,
    per_page: 100,
  });
  for await (const { data } of pages) {
    for (const artifact of data) {
      artifacts.push({
        id: artifact.id,
        name: artifact.name,
        bytes: artifact.size_in_bytes,
        expired: artifact.expired,
        createdAt: artifact.created_at ?? '',
        expiresAt: artifact.expires_at ?? null,
        digest: artifact.digest ?? null,
        headSha: artifact.workflow_run?.head_sha ?? null,
        runId: artifact.workflow_run?.id ?? null,
      });
    }
    if (artifacts.length >= MAX_LISTED) break;
  }
  return artifacts;
}

/** Artifacts whose name matches, the newest of each name (attempts of one run share names), in name order. */
export function chooseArtifacts(
  artifacts: readonly Artifact[],
  wanted: readonly string[] | ((artifact: Artifact) => boolean),
  run: { id: number; headSha: string },
): Artifact[] {
  const isWanted = typeof wanted === 'function' ? wanted : ({ name }: Artifact): boolean => matchesAny(wanted, name);
  const newest = new Map<string, Artifact>();
  for (const artifact of artifacts) {
    if (!isWanted(artifact)) continue;
    if (artifact.headSha !== null && artifact.headSha !== run.headSha) continue;
    if (artifact.runId !== null && artifact.runId !== run.id) continue;
    const known = newest.get(artifact.name);
    if (known === undefined || isNewer(artifact, known)) newest.set(artifact.name, artifact);
  }
  return [...newest.values()].sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
}

function isNewer(a: Artifact, b: Artifact): boolean {
  return a.createdAt === b.createdAt ? a.id > b.id : a.createdAt > b.createdAt;
}
