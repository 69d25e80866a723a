import { PERMISSIONS } from '../../github/client.ts';
import { readPullRequest } from '../../github/pull-requests.ts';
import type { Dependencies } from './dependencies.ts';
import type { Analysis } from './make-report.ts';
import { PullRequestRequest } from './request.ts';
import { subjectOf } from './subject.ts';

/** How often a long analysis looks whether anybody still wants it. */
const LOOK_MS = 5000;
const TEST_LOOK_MS = 200;

/**
 * Runs the work of an analysis, and stops it when the pull request gets a newer commit or is closed meanwhile: then it is done once more,
 * which finds that out at its beginning and concludes the check. Only requests of the store are looked at until there is one.
 */
export async function unlessOvertaken<T>(deps: Dependencies, analysis: Analysis, work: (deps: Dependencies) => Promise<T>): Promise<T> {
  const { target, pr, headSha } = analysis;
  const subject = subjectOf.pullRequest(target.repository, pr);
  const overtaken = new AbortController();
  const seen = new Set<number>();
  let looking: Promise<void> | null = null;
  const look = async (): Promise<void> => {
    for (const { id, payload } of await deps.store.requests.pending(subject)) {
      const parsed = seen.has(id) ? null : PullRequestRequest.safeParse(payload);
      seen.add(id);
      const isNews = parsed?.success === true && (parsed.data.kind === 'close' || parsed.data.headSha !== headSha);
      if (!isNews) continue;
      const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.read);
      const pull = await readPullRequest(octokit, target.repository, pr);
      if (pull !== null && pull.headSha === headSha && pull.state === 'open') continue;
      overtaken.abort(new Error('the pull request has moved on'));
      return;
    }
  };
  const timer = setInterval(
    () => {
      looking ??= look()
        .catch((error: unknown) => deps.log.warn({ err: error, subject }, 'whether the pull request has moved on is not known'))
        .finally(() => {
          looking = null;
        });
    },
    deps.options.isTest ? TEST_LOOK_MS : LOOK_MS,
  );
  try {
    const signal = AbortSignal.any([deps.signal, overtaken.signal]);
    return await work({ ...deps, signal, isOvertaken: () => overtaken.signal.aborted });
  } catch (error) {
    if (!overtaken.signal.aborted || deps.signal.aborted) throw error;
    deps.log.info({ repository: target.repository.id, pr, sha: headSha }, 'an analysis was stopped, the pull request has moved on');
  } finally {
    clearInterval(timer);
    await looking;
  }
  return work(deps);
}
