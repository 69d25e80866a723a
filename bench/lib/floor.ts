import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { scanTrace } from '../../src/importers/scan-trace.ts';
import { openSource } from '../../src/sources/index.ts';

/**
 * What no reader can be faster than: the same files, on the same number of threads, `count` reads (and unpacks) every byte and
 * counts it, `scan` walks every trace event and does nothing with it. Usage: floor.ts count|scan PATH
 */
interface Share {
  readonly mode: string;
  readonly path: string;
  readonly part: number;
  readonly parts: number;
}

/** Every `parts`-th of the largest files, each thread its own. */
async function work({ mode, path, part, parts }: Share): Promise<number> {
  const source = await openSource(path);
  const mine = [...source.entries].sort((a, b) => b.bytes - a.bytes).filter((_, i) => i % parts === part);
  let total = 0;
  for (const entry of mine) {
    if (mode === 'scan' && entry.path.endsWith('trace_view.json')) total += (await scanTrace(entry.open(), () => {})).bytes;
    else for await (const chunk of entry.open()) total += chunk.length;
  }
  await source.close();
  return total;
}

if (isMainThread) {
  const [mode = 'count', path = '.'] = process.argv.slice(2);
  const parts = availableParallelism();
  const totals = Array.from({ length: parts }, (_, part) => {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { mode, path, part, parts } satisfies Share });
    return new Promise<number>((resolve, reject) => {
      worker.on('message', resolve);
      worker.on('error', reject);
    });
  });
  console.log((await Promise.all(totals)).reduce((a, b) => a + b, 0));
} else parentPort!.postMessage(await work(workerData as Share));
