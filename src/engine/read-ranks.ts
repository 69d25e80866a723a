import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { rankFacts } from '../facts/rank/index.ts';
import { type RankFolder, readRank } from '../importers/index.ts';
import type { RankFacts } from '../model/facts.ts';
import type { EntryPlace } from '../sources/source.ts';

/** One rank for a worker: its folder and where its files lie. */
export interface RankTask {
  readonly index: number;
  readonly folder: string;
  readonly entries: readonly { readonly path: string; readonly bytes: number; readonly place: EntryPlace }[];
  readonly readAs: RankFolder['readAs'];
  readonly device: RankFolder['device'];
}

export type FromRankWorker =
  | { readonly type: 'bytes'; readonly bytes: number }
  | { readonly type: 'facts'; readonly index: number; readonly facts: RankFacts }
  | { readonly type: 'failed'; readonly index: number; readonly error: unknown };

/** Below this a second thread costs more than it brings, bytes. */
const WORTH_THREADS = 24 << 20;
/** A worker's heap; the facts of a rank of a 1 GB trace need some 100 MB while they are made. */
const HEAP_MB = 4_096;
const YOUNG_MB = 32;

function bytesOf(folder: RankFolder): number {
  return folder.entries.reduce((sum, e) => sum + e.bytes, 0);
}

/** How far the reading is: bytes of all ranks, and ranks that are finished. */
export type OnRead = (bytes: number, ranks: number) => void;

/** Tier one for all ranks: side by side on as many threads as there are cores when the upload is large, else here. Order is kept. */
export async function readRanks(folders: readonly RankFolder[], onRead: OnRead, signal?: AbortSignal): Promise<RankFacts[]> {
  const threads = Math.min(availableParallelism(), folders.length);
  const total = folders.reduce((sum, f) => sum + bytesOf(f), 0);
  let done = 0;
  let finished = 0;
  const count = (bytes: number): void => {
    done += bytes;
    onRead(done, finished);
  };
  const finish = (): void => {
    finished++;
    onRead(done, finished);
  };
  if (threads < 2 || total < WORTH_THREADS) {
    const ranks: RankFacts[] = [];
    for (const folder of folders) {
      signal?.throwIfAborted();
      ranks.push(rankFacts(await readRank(folder, count)));
      finish();
    }
    return ranks;
  }
  const tasks: RankTask[] = folders
    .map((f, index) => ({
      index,
      folder: f.folder,
      entries: f.entries.map(({ path, bytes, place }) => ({ path, bytes, place })),
      readAs: f.readAs,
      device: f.device,
    }))
    .sort((a, b) => bytesOf(folders[b.index]!) - bytesOf(folders[a.index]!));
  const results = new Array<RankFacts>(folders.length);
  const workers = Array.from({ length: threads }, () => startWorker());
  try {
    await Promise.all(workers.map((worker) => drain(worker, tasks, results, { count, finish }, signal)));
  } finally {
    await Promise.all(workers.map((w) => w.terminate()));
  }
  signal?.throwIfAborted();
  return results;
}

function startWorker(): Worker {
  const file = fileURLToPath(new URL(`./rank-worker${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url));
  return new Worker(file, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_MB } });
}

/** Feeds one worker until the tasks run out. */
function drain(
  worker: Worker,
  tasks: RankTask[],
  results: RankFacts[],
  { count, finish }: { readonly count: (bytes: number) => void; readonly finish: () => void },
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const next = (): void => {
      const task = signal?.aborted === true ? undefined : tasks.shift();
      if (task === undefined) resolve();
      else worker.postMessage(task);
    };
    worker.on('message', (message: FromRankWorker) => {
      if (message.type === 'bytes') count(message.bytes);
      else if (message.type === 'failed') reject(message.error);
      else {
        results[message.index] = message.facts;
        finish();
        next();
      }
    });
    worker.on('error', reject);
    worker.on('exit', (code) => reject(new Error(`a reading thread ended with ${code}`)));
    next();
  });
}
