import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { AdviseError } from '../base/errors.ts';
import { collectRanks } from '../engine/collect-ranks.ts';
import { filesOfShare, wantedFiles } from '../importers/index.ts';
import { factsToJson } from '../model/facts-json.ts';
import { openSource, type ProfileSource, type Wanted } from '../sources/index.ts';
import { type AnalysisProgress, ARCHIVE_ERROR, type DigestRequest, NOT_FETCHED } from './analysis-protocol.ts';

/** Reads one portion of a job down to the facts of its ranks, gzipped, into a file. Runs in the analysis process only. */
export async function digestUpload(request: DigestRequest, onProgress: (progress: AnalysisProgress) => void): Promise<void> {
  const sources: ProfileSource[] = [];
  const { share = null } = request;
  const only = share === null ? null : (files: Parameters<Wanted>[0]) => filesOfShare(files, share);
  try {
    for (const path of request.paths) {
      sources.push(
        await openSource(path, undefined, request.partial.includes(path) ? wantedFiles : null, only).catch((error: unknown) => {
          throw error instanceof AdviseError ? AdviseError.from(`${ARCHIVE_ERROR}${error.code}`, error.told, { cause: error }) : error;
        }),
      );
    }
    const { ranks, ...upload } = await collectRanks(sources, {
      isOneOfMany: share?.isAlone !== true,
      isShare: share !== null,
      onBytes: (done, total, count) => onProgress({ phase: 'read', done, total, ranks: count }),
    });
    const missed = [...upload.inputs, ...ranks.flatMap((rank) => rank.inputs)].find(({ note }) =>
      note?.text.en.includes('was not fetched'),
    );
    if (missed !== undefined && request.partial.length > 0)
      throw new AdviseError(NOT_FETCHED, { en: 'a file was not fetched', zh: '有文件未下载' }, missed.path);
    const bytes = await promisify(gzip)(factsToJson(ranks, upload), { level: 6 });
    if (bytes.length > request.out.maxBytes) throw tooMany();
    await writeFile(request.out.path, bytes, { mode: 0o600 });
  } finally {
    for (const source of sources) await source.close();
  }
}

function tooMany(): AdviseError {
  return new AdviseError(
    'portion-too-large',
    { en: 'the artifact holds more ranks than are kept of one', zh: '该 artifact 所含的卡数超过单个 artifact 的上限' },
    { en: 'Upload the ranks in several artifacts.', zh: '请把各卡分成多个 artifact 上传。' },
  );
}
