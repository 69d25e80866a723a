import { parentPort } from 'node:worker_threads';
import { rankFacts } from '../facts/rank/index.ts';
import { readRank } from '../importers/index.ts';
import { openPlace, type PlaceOpener } from '../sources/index.ts';
import type { FromRankWorker, RankTask } from './read-ranks.ts';

/** A reading thread: opens the files of one rank again, reduces them to facts, forgets the rest. */
const port = parentPort!;
const opener: PlaceOpener = openPlace();
/** Progress is told in steps of this size, bytes. */
const STEP = 8 << 20;

function send(message: FromRankWorker): void {
  port.postMessage(message);
}

async function read(task: RankTask): Promise<void> {
  let pending = 0;
  try {
    const entries = await Promise.all(task.entries.map((e) => opener(e)));
    const capture = await readRank({ folder: task.folder, entries, readAs: task.readAs, device: task.device }, (bytes) => {
      pending += bytes;
      if (pending < STEP) return;
      send({ type: 'bytes', bytes: pending });
      pending = 0;
    });
    send({ type: 'bytes', bytes: pending });
    send({ type: 'facts', index: task.index, facts: rankFacts(capture) });
  } catch (error) {
    send({ type: 'failed', index: task.index, error });
  }
}

port.on('message', (task: RankTask) => void read(task));
