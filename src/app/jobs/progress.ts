import { setTimeout as sleep } from 'node:timers/promises';
import { PERMISSIONS, statusOf } from '../../github/client.ts';
import { readCheckTitle, tellCheck } from '../../github/publish/check.ts';
import type { Lang } from '../../model/lang.ts';
import { renderCheck } from '../../render/check.ts';
import type { RunningStep } from '../../render/views.ts';
import type { CheckPlace } from './check-run.ts';
import type { Dependencies } from './dependencies.ts';

/** Tells on the check run how far long work is. Best effort: it never fails, and never holds the work up. */
export interface Progress {
  tell(step: RunningStep): void;
  /** Ends it. When this has resolved, this process says no more. */
  stop(): Promise<void>;
  /**
   * To be called after the conclusion: an update whose answer was lost may have reached GitHub after it. Then the conclusion is published
   * once more.
   */
  settle(publishAgain: () => Promise<void>): Promise<void>;
}

/** Updates are left out while fewer than this share of the hour's requests is left: the conclusion needs them. */
const SPARE = 0.2;
/** An update that failed makes the next pauses longer, up to so many intervals. */
const MAX_PAUSE = 16;
const TIMEOUT_MS = 20_000;
/** When the conclusion is looked at again after an update without an answer. */
const LOOK_AGAIN_MS = [0, 5_000, 30_000];

export function startProgress(deps: Dependencies, place: CheckPlace, checkRunId: number, lang: Lang): Progress {
  const { progressMs, isTest } = deps.options;
  const since = deps.now();
  /** Titles of updates without an answer. One that was said again stays here: the first may still be on its way. */
  const unanswered = new Set<string>();
  let step: RunningStep | null = null;
  let sent = '';
  let failures = 0;
  let resumeAt = 0;
  let sending: Promise<void> | null = null;

  async function send(): Promise<void> {
    if (step === null) return;
    // What the run shows may be another pull request's, which has the same head.
    if ((await deps.store.checks.ofCommit(place.target.repository.id, place.sha)).length > 1) return;
    const { slug } = await deps.github.identity();
    const base = { lang, appSlug: slug, pr: place.pr, sha: place.sha, links: { htmlBase: null, report: null }, workflow: null } as const;
    const progress = { step, since, now: deps.now() };
    const { title, summary } = renderCheck({
      comment: { ...base, state: 'running', phase: 'analysing', progress },
      annotatable: () => false,
    });
    if (summary === sent) return;
    const { installationId, repository } = place.target;
    const octokit = await deps.github.client(installationId, repository, PERMISSIONS.publish);
    const signal = AbortSignal.any([deps.signal, AbortSignal.timeout(isTest ? 1_000 : TIMEOUT_MS)]);
    const isAgain = unanswered.has(title);
    unanswered.add(title);
    const { left, resetAt } = await tellCheck(octokit, repository, checkRunId, { title, summary }, signal).catch((error: unknown) => {
      // A refusal is an answer; anything else leaves open whether GitHub has read the update.
      if ((statusOf(error) ?? 500) < 500 && !isAgain) unanswered.delete(title);
      throw error;
    });
    if (!isAgain) unanswered.delete(title);
    sent = summary;
    failures = 0;
    if (left < SPARE) resumeAt = resetAt;
  }

  const timer = setInterval(() => {
    if (sending !== null || deps.now() < resumeAt) return;
    sending = send()
      .catch((error: unknown) => {
        failures++;
        resumeAt = deps.now() + progressMs * Math.min(MAX_PAUSE, 2 ** failures);
        deps.log.warn({ err: error, pr: place.pr }, 'progress could not be told');
      })
      .finally(() => {
        sending = null;
      });
  }, progressMs);
  if (progressMs === 0) clearInterval(timer);

  return {
    tell(next) {
      step = next;
    },
    async stop() {
      clearInterval(timer);
      await sending;
    },
    async settle(publishAgain) {
      if (unanswered.size === 0) return;
      const { installationId, repository } = place.target;
      for (const ms of LOOK_AGAIN_MS) {
        await sleep(isTest ? ms / 10 : ms, undefined, { signal: deps.signal });
        const octokit = await deps.github.client(installationId, repository, PERMISSIONS.publish);
        const title = await readCheckTitle(octokit, repository, checkRunId);
        if (title !== null && unanswered.has(title)) await publishAgain();
      }
    },
  };
}
