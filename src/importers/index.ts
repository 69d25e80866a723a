import type { RankCapture } from '../model/capture.ts';
import { readRank as readTextRank } from './ascend-text/index.ts';
import type { RankFolder } from './rank-folders.ts';

export { findRankFolders, type RankFolder, rankFromFolder } from './rank-folders.ts';

/** Reads one rank folder, whatever export it holds. */
export async function readRank(folder: RankFolder, onBytes: (bytes: number) => void): Promise<RankCapture> {
  return readTextRank(folder, onBytes);
}
