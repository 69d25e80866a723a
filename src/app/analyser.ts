import { writeFile } from 'node:fs/promises';
import { AdviseError } from '../base/errors.ts';
import { type AnalyseInput, analyse } from '../engine/analyse.ts';
import { keptFacts } from '../engine/kept-facts.ts';
import { wantedFiles } from '../importers/index.ts';
import type { Report } from '../model/report.ts';
import { textsOf } from '../report/texts.ts';
import { sourceTreeFrom } from '../source/source-tree-from.ts';
import { openSource, type ProfileSource } from '../sources/index.ts';
import { type AnalyseArtifact, ARCHIVE_ERROR, NOT_FETCHED } from './analysis-protocol.ts';

/** Marks the error of an archive that cannot be used, as opposed to an analysis that failed. */
async function openArchive(path: string, isPartial: boolean): Promise<ProfileSource> {
  try {
    return await openSource(path, undefined, isPartial ? wantedFiles : null);
  } catch (error) {
    if (error instanceof AdviseError) throw AdviseError.from(`${ARCHIVE_ERROR}${error.code}`, error.told, { cause: error });
    throw error;
  }
}

/** Opens what was downloaded and runs the engine on it. Runs in the analysis process only. */
export const analyseArtifact: AnalyseArtifact = async (request, hooks) => {
  try {
    return await analyseWith(request, hooks);
  } catch (error) {
    // Facts that another version has kept: better no comparison than no report.
    if (!(error instanceof AdviseError) || !BAD_FACTS.has(error.code) || (request.baseline ?? []).length === 0) throw error;
    return analyseWith({ ...request, baseline: [] }, hooks);
  }
};

type GivenSource = NonNullable<Parameters<AnalyseArtifact>[0]['source']>;
type OnNamed = NonNullable<Parameters<AnalyseArtifact>[1]['onNamed']>;

/** The source with the files that the stacks name. */
function moreSource(given: GivenSource, onNamed: OnNamed): NonNullable<AnalyseInput['more']> {
  return async (frames) => {
    const named = await onNamed(frames);
    return named.length === 0 ? null : sourceTreeFrom({ ...given, files: [...given.files, ...named] });
  };
}

const BAD_FACTS: ReadonlySet<string> = new Set(['bad-facts', 'no-profile']);

const analyseWith: AnalyseArtifact = async (request, { onProgress, signal, onNamed }) => {
  const sources: ProfileSource[] = [];
  const baseline: { label: string; sources: ProfileSource[]; isOneOfMany: true }[] = [];
  const { keep } = request;
  let kept: (() => Buffer | null) | null = null;
  const others: Report[] = [];
  try {
    for (const path of request.paths) sources.push(await openArchive(path, request.partial.includes(path)));
    for (const { label, path } of request.baseline ?? []) baseline.push({ label, sources: [await openSource(path)], isOneOfMany: true });
    const source = request.source === null ? null : sourceTreeFrom(request.source);
    const report = await analyse({
      sources,
      options: request.options,
      source,
      ...(request.source === null || onNamed === undefined ? {} : { more: moreSource(request.source, onNamed) }),
      baseline,
      onFacts: (ranks, upload) => {
        if (keep) kept = () => keptFacts(ranks, upload, keep.maxBytes);
      },
      ...(request.inBoth === true ? { onOther: (other) => others.push(other) } : {}),
      onProgress,
      signal,
    });
    // Importers put what they cannot open into the list of inputs; a file that only was not fetched is no damage of the upload.
    const missed = report.inputs.find((input) => /was not fetched|未下载/.test(input.note));
    if (missed !== undefined && request.partial.length > 0) throw new AdviseError(NOT_FETCHED, missed.note, missed.path);
    const facts = (kept as (() => Buffer | null) | null)?.() ?? null;
    if (keep && facts !== null) await writeFile(keep.path, facts, { mode: 0o600 });
    const [other] = others;
    return other === undefined ? report : { ...report, texts: textsOf(report, other) };
  } finally {
    for (const source of [...sources, ...baseline.flatMap((run) => run.sources)]) await source.close();
  }
};
