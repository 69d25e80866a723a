import { parentPort, workerData } from 'node:worker_threads';
import { createLogger } from '../github/log.ts';
import type { StoredPage } from './details/serve-details.ts';
import type { ServerOptions } from './env.ts';
import { startWorkLoop } from './work-loop.ts';

/** Messages between the thread that answers webhooks and this one. */
export type ToWorkThread =
  | { readonly type: 'wake' }
  | { readonly type: 'page'; readonly id: number; readonly repoId: number; readonly page: string; readonly known: string | null }
  | { readonly type: 'stop'; readonly graceMs: number }
  | { readonly type: 'ask'; readonly id: number; readonly about: Question };
export type FromWorkThread =
  | { readonly type: 'ready' }
  | { readonly type: 'stopped' }
  | { readonly type: 'page'; readonly id: number; readonly stored: StoredPage | 'failed' }
  | { readonly type: 'answer'; readonly id: number; readonly text: string | null };
/** `problem`: why it cannot work, null when it can. `metrics`: its part of /metrics. */
export type Question = 'problem' | 'metrics';

/** The embedded database computes on its thread; here it cannot keep a webhook waiting. */
const port = parentPort;
if (port === null) throw new Error('work-thread.ts runs as a worker thread only');
const options = workerData as ServerOptions;
const loop = await startWorkLoop(options, createLogger(options.logLevel));
port.on('message', (message: ToWorkThread) => {
  if (message.type === 'wake') return loop.wake();
  if (message.type === 'page') {
    void loop
      .page(message.repoId, message.page, message.known)
      .catch(() => 'failed' as const)
      .then((stored) => port.postMessage({ type: 'page', id: message.id, stored } satisfies FromWorkThread));
    return;
  }
  if (message.type === 'ask') {
    void loop[message.about]()
      .catch(() => (message.about === 'problem' ? 'the store does not answer; see the log' : ''))
      .then((text) => port.postMessage({ type: 'answer', id: message.id, text } satisfies FromWorkThread));
    return;
  }
  void loop.stop(message.graceMs).then(() => {
    port.postMessage({ type: 'stopped' } satisfies FromWorkThread);
    port.close();
  });
});
port.postMessage({ type: 'ready' } satisfies FromWorkThread);
