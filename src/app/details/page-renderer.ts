import { Worker } from 'node:worker_threads';
import { siblingModule } from '../sibling-module.ts';
import type { Wish } from './content.ts';
import type { FromPageThread, RenderedPage, ToPageThread } from './page-thread.ts';

const TIMEOUT_MS = 60_000;
const IDLE_MS = 60_000;
const MEMORY_MB = 512;
/** Pages that may wait for their turn. */
const MAX_WAITING = 8;

/** Too many pages are asked for at once. */
export class Busy extends Error {}

/** Makes one page at a time, on a thread of its own that ends when nothing is asked for, or when a page takes too much time or memory. */
export interface PageRenderer {
  /** null: what is kept is no report that this version can show. */
  render(bytes: Uint8Array, wish: Wish): Promise<RenderedPage | null>;
  close(): Promise<void>;
}

export function createPageRenderer(timeoutMs = TIMEOUT_MS): PageRenderer {
  let thread: Worker | null = null;
  let idle: NodeJS.Timeout | undefined;
  let waiting = 0;
  let last: Promise<unknown> = Promise.resolve();
  let settle: { resolve: (answer: FromPageThread) => void; reject: (error: Error) => void } | null = null;

  async function end(): Promise<void> {
    clearTimeout(idle);
    const ended = thread;
    thread = null;
    await ended?.terminate();
  }

  function start(): Worker {
    const worker = new Worker(siblingModule('page-thread', import.meta.url), {
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    });
    // One that was ended, or died while nobody waited, has nothing more to say.
    const die = (error: Error): void => {
      if (thread !== worker) return;
      thread = null;
      settle?.reject(error);
    };
    worker.on('message', (answer: FromPageThread) => {
      if (thread === worker) settle?.resolve(answer);
    });
    worker.on('error', die);
    worker.on('exit', (code) => die(new Error(`the page thread ended with code ${code}`)));
    worker.unref();
    return worker;
  }

  async function once(task: ToPageThread): Promise<RenderedPage | null> {
    clearTimeout(idle);
    thread ??= start();
    const worker = thread;
    let timer: NodeJS.Timeout | undefined;
    try {
      const answer = await new Promise<FromPageThread>((resolve, reject) => {
        settle = { resolve, reject };
        timer = setTimeout(() => reject(new Error(`a page was not made within ${timeoutMs / 1000} s`)), timeoutMs);
        worker.postMessage(task);
      });
      if ('failed' in answer) throw new Error(answer.failed);
      idle = setTimeout(() => void end(), IDLE_MS).unref();
      return answer.page;
    } catch (error) {
      await end();
      throw error;
    } finally {
      settle = null;
      clearTimeout(timer);
    }
  }

  return {
    async render(bytes, wish) {
      if (waiting >= MAX_WAITING) throw new Busy('too many pages are asked for at once');
      waiting++;
      const turn = last.then(() => once({ bytes, wish }));
      last = turn.catch(() => undefined);
      try {
        return await turn;
      } finally {
        waiting--;
      }
    },
    close: end,
  };
}
