import { pathToFileURL } from 'node:url';
import { AdviseError } from '../base/errors.ts';
import type { Report } from '../model/report.ts';
import type { SourceTree } from '../model/source-tree.ts';
import { sourceTreeFrom } from '../source/source-tree-from.ts';
import { openSource } from '../sources/index.ts';
import type { ProfileSource } from '../sources/source.ts';
import { type AnalyseArtifact, type AnalysisOptions, type AnalysisProgress, ARCHIVE_ERROR } from './analysis-protocol.ts';
import { siblingModule } from './sibling-module.ts';

interface Engine {
  analyse(input: {
    sources: ProfileSource[];
    options: AnalysisOptions;
    source: SourceTree | null;
    onProgress: (progress: AnalysisProgress) => void;
    signal: AbortSignal;
  }): Promise<Report>;
}

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
  const engine = (await import(pathToFileURL(siblingModule('../engine/analyse', import.meta.url)).href)) as Engine;
  const sources: ProfileSource[] = [];
  try {
    for (const path of request.paths) sources.push(await openArchive(path));
    const source = request.source === null ? null : sourceTreeFrom(request.source);
    return await engine.analyse({ sources, options: request.options, source, onProgress, signal });
  } finally {
    for (const source of sources) await source.close();
  }
};
