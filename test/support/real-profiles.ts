/* Real profiles that lie beside the repository on some machines. They are never copied into it. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { findRankFolders, readRank } from '../../src/importers/index.ts';
import type { RankCapture } from '../../src/model/capture.ts';
import { openSource } from '../../src/sources/index.ts';

const ROOT = fileURLToPath(new URL('../../../shared/profiles/', import.meta.url));

export const HAVE_PROFILES = existsSync(ROOT);
export const WHY_SKIPPED = HAVE_PROFILES ? '' : ' (skipped: ../shared/profiles is not on this machine)';

const TEXT = `${ROOT}msinsight/test/data/pytorch/text/`;
export const PATHS = {
  level0: `${TEXT}level0`,
  level1: `${TEXT}level1`,
  level2: `${TEXT}level2`,
  st: `${ROOT}msinsight/test/st/level2`,
  gpt0: `${ROOT}msinsight/server/src/test/test_data/test_rank_0`,
  gpt1: `${ROOT}msinsight/server/src/test/test_data/test_rank_1`,
  opprof: `${ROOT}opprof-negative`,
  singleProcess: `${ROOT}msprof-analyze/test/ut/advisor/timeline_advice`,
  quotedTimes: `${ROOT}msprof-analyze/test/ut/advisor/compute_advice/data`,
  cluster8: `${ROOT}msprof-analyze/test/resource/advisor/cluster_analysis_output`,
  arithmetic: `${ROOT}msprof-analyze/test/ut/advisor/advisor_backend/compute_advice`,
} as const;

/** Tables of every rank folder below a path. */
export async function captures(path: string): Promise<RankCapture[]> {
  const source = await openSource(path);
  const out: RankCapture[] = [];
  for (const folder of findRankFolders(source.entries).folders) out.push(await readRank(folder, () => {}));
  await source.close();
  return out;
}
