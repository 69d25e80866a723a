import { AdviseError } from '../base/errors.ts';
import { analyse } from '../engine/analyse.ts';
import { sourceTreeFrom } from '../source/source-tree-from.ts';
import { openSource, type ProfileSource } from '../sources/index.ts';
import { type AnalyseArtifact, ARCHIVE_ERROR } from './analysis-protocol.ts';

/** Marks the error of an archive that cannot be used, as opposed to an analysis that failed. */
async function openArchive(path: string): Promise<ProfileSource> {
  try {
    return await openSource(path);
  } catch (error) {
    if (error instanceof AdviseError) throw new AdviseError(`${ARCHIVE_ERROR}${error.code}`, error.message, error.hint, { cause: error });
    throw error;
  }
}

/** Opens what was downloaded and runs the engine on it. Runs in the analysis process only. */
export const analyseArtifact: AnalyseArtifact = async (request, { onProgress, signal }) => {
  const sources: ProfileSource[] = [];
  try {
    for (const path of request.paths) sources.push(await openArchive(path));
    const source = request.source === null ? null : sourceTreeFrom(request.source);
    return await analyse({ sources, options: request.options, source, onProgress, signal });
  } finally {
    for (const source of sources) await source.close();
  }
};
