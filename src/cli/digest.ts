import { writeFile } from 'node:fs/promises';
import { formatBytes } from '../base/phrase.ts';
import { collectRanks } from '../engine/collect-ranks.ts';
import { factsToJson } from '../model/facts-json.ts';
import type { Lang } from '../model/lang.ts';
import { openSource, type ProfileSource } from '../sources/index.ts';
import { progressBar } from './progress.ts';

/** `npu-advise digest PATH... --out facts.json`: the facts of every rank, a fraction of the profile, to be analysed elsewhere. */
export async function digest(paths: readonly string[], out: string, lang: Lang): Promise<string> {
  const sources: ProfileSource[] = [];
  const bar = progressBar(process.stderr, lang);
  try {
    for (const path of paths) sources.push(await openSource(path));
    const { ranks, ...upload } = await collectRanks(sources, { onBytes: (done, total) => bar.update({ phase: 'read', done, total }) });
    bar.done();
    const json = factsToJson(ranks, upload);
    await writeFile(out, json);
    const read = upload.inputs.reduce((sum, i) => sum + i.bytes, 0);
    return lang === 'zh'
      ? `${out}：${ranks.length} 张卡，${formatBytes(json.length)}（原 ${formatBytes(read)}）\n`
      : `${out}: ${ranks.length} ${ranks.length === 1 ? 'rank' : 'ranks'}, ${formatBytes(json.length)} of ${formatBytes(read)}\n`;
  } finally {
    bar.done();
    for (const opened of sources) await opened.close();
  }
}
