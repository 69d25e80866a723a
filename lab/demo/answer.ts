import { setTimeout as sleep } from 'node:timers/promises';
import type { LoopbackGitHub, PullHandle, PullView } from '../loopback-github/index.ts';

export interface Patience {
  /** When to give up, in ms from now. */
  timeoutMs: number;
  /** Called about every ten seconds with the time waited so far. */
  onWaiting(seconds: number): void;
  /** Says why waiting is pointless; null while there is hope. */
  hopeless(): string | null;
}

/** The App pauses up to three seconds between writes; after this long without a request it has said all it had to say. */
const QUIET_MS = 4_000;
/** The last write of an answer with suggestions links the comment to them. */
const QUIET_WHEN_LINKED_MS = 500;
const POLL_MS = 100;

/** What the answer still lacks; empty when comment and check are there. */
export function missingParts(view: PullView): string[] {
  const check = view.checks.at(-1);
  return [
    ...(view.comments.some(({ viaApp }) => viaApp) ? [] : ['the comment']),
    ...(check === undefined ? ['the check run'] : []),
    ...(check !== undefined && check.status !== 'completed' ? [`the conclusion of the check run (now ${check.status})`] : []),
  ];
}

/** Waits until the App has answered and fallen silent. */
export async function waitForAnswer(hub: LoopbackGitHub, pull: PullHandle, patience: Patience): Promise<PullView> {
  const began = Date.now();
  let requests = hub.journal.length;
  let quietSince = began;
  let told = began;
  for (;;) {
    const now = Date.now();
    if (hub.journal.length !== requests) {
      requests = hub.journal.length;
      quietSince = now;
    }
    const view = hub.view(pull);
    const missing = missingParts(view);
    const isLinked = view.comments.some(({ viaApp, body }) => viaApp && body.includes('#discussion_r'));
    if (missing.length === 0 && now - quietSince >= (isLinked ? QUIET_WHEN_LINKED_MS : QUIET_MS)) return view;
    const reason = patience.hopeless() ?? (now - began > patience.timeoutMs ? `no answer after ${patience.timeoutMs / 1000} s` : null);
    if (reason !== null) throw new Error(`${reason}; missing: ${missing.join(', ') || 'nothing, but the App goes on writing'}`);
    if (now - told >= 10_000) {
      told = now;
      patience.onWaiting(Math.round((now - began) / 1000));
    }
    await sleep(POLL_MS);
  }
}
