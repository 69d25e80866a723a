import { AdviseError } from '../base/errors.ts';
import { wantedFiles } from '../importers/index.ts';
import { wantedParts } from '../sources/index.ts';
import type { PartsAnswer } from './analysis-protocol.ts';

/** What must be fetched of each zip, by its directory. Runs in the analysis process only: directories are foreign, too. */
export async function partsOf(paths: readonly string[]): Promise<PartsAnswer[]> {
  const answers: PartsAnswer[] = [];
  for (const path of paths) {
    try {
      answers.push({ ok: true, parts: await wantedParts(path, wantedFiles) });
    } catch (error) {
      if (!(error instanceof AdviseError)) throw error;
      answers.push({ ok: false, code: error.code, told: error.told });
    }
  }
  return answers;
}
