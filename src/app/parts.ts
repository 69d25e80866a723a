import { AdviseError } from '../base/errors.ts';
import { filesOfShare, type Share, shareCount, wantedFiles } from '../importers/index.ts';
import { type Wanted, wantedParts } from '../sources/index.ts';
import type { PartsAnswer } from './analysis-protocol.ts';

/** What must be fetched of each zip, or of one share of its ranks, by its directory. Runs in the analysis process only: directories are foreign, too. */
export async function partsOf(paths: readonly string[], share: Share | null): Promise<PartsAnswer[]> {
  const answers: PartsAnswer[] = [];
  for (const path of paths) {
    try {
      let groups = 0;
      const counting: Wanted = (files) => {
        groups = shareCount(files);
        return wantedFiles(files);
      };
      const parts = await wantedParts(path, counting, undefined, share === null ? null : (files) => filesOfShare(files, share));
      answers.push({ ok: true, parts, groups });
    } catch (error) {
      if (!(error instanceof AdviseError)) throw error;
      answers.push({ ok: false, code: error.code, told: error.told });
    }
  }
  return answers;
}
