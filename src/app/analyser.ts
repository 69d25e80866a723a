import { AdviseError } from '../base/errors.ts';
import { analyse } from '../engine/analyse.ts';
import { wantedFiles } from '../importers/index.ts';
import { sourceTreeFrom } from '../source/source-tree-from.ts';
import { openSource, type ProfileSource } from '../sources/index.ts';
import { type AnalyseArtifact, ARCHIVE_ERROR, NOT_FETCHED } from './analysis-protocol.ts';

/** Marks the error of an archive that cannot be used, as opposed to an analysis that failed. */
async function openArchive(path: string, isPartial: boolean): Promise<ProfileSource> {
  try {
    return await openSource(path, undefined, isPartial ? wantedFiles : null);
  } catch (error) {
    if (error instanceof AdviseError) throw new AdviseError(`${ARCHIVE_ERROR}${error.code}`, error.message, error.hint, { cause: error });
    throw error;
  }
}

/** Opens what was downloaded and runs the engine on it. Runs in the analysis process only. */
export const analyseArtifact: AnalyseArtifact = async (request, { onProgress, signal }) => {
  const sources: ProfileSource[] = [];
  try {
    for (const path of request.paths) sources.push(await openArchive(path, request.partial.includes(path)));
    const source = request.source === null ? null : sourceTreeFrom(request.source);
    const report = await analyse({ sources, options: request.options, source, onProgress, signal });
    // Importers put what they cannot open into the list of inputs; a file that only was not fetched is no damage of the upload.
    const missed = report.inputs.find((input) => input.note.includes('was not fetched'));
    if (missed !== undefined && request.partial.length > 0) throw new AdviseError(NOT_FETCHED, missed.note, missed.path);
    return report;
  } finally {
    for (const source of sources) await source.close();
  }
};
