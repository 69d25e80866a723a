import { parentPort, workerData } from 'node:worker_threads';
import { createLogger } from '../github/log.ts';
import type { ServerOptions } from './env.ts';
import { startWorkLoop } from './work-loop.ts';

/** Messages between the thread that answers webhooks and this one. */
export type ToWorkThread = { readonly type: 'wake' } | { readonly type: 'stop'; readonly graceMs: number };
export type FromWorkThread = { readonly type: 'ready' } | { readonly type: 'stopped' };

/** The embedded database computes on its thread; here it cannot keep a webhook waiting. */
const port = parentPort;
if (port === null) throw new Error('work-thread.ts runs as a worker thread only');
const options = workerData as ServerOptions;
const loop = await startWorkLoop(options, createLogger(options.logLevel));
port.on('message', (message: ToWorkThread) => {
  if (message.type === 'wake') return loop.wake();
  void loop.stop(message.graceMs).then(() => {
    port.postMessage({ type: 'stopped' } satisfies FromWorkThread);
    port.close();
  });
});
port.postMessage({ type: 'ready' } satisfies FromWorkThread);
