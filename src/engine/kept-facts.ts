import { gzipSync } from 'node:zlib';
import type { RankFacts, UploadFacts } from '../model/facts.ts';
import { factsToJson } from '../model/facts-json.ts';

/**
 * What is kept of a job to compare others with: a gzipped facts.json of at most so many bytes, without the lists of what was uploaded and
 * the remarks about it. Where a job is too large for that, ranks spread over all of it stay, the same ones in every run of a job of that
 * size; a comparison then says that it is of those ranks. null: not even one rank fits.
 */
export function keptFacts(ranks: readonly RankFacts[], upload: UploadFacts, maxBytes: number): Buffer | null {
  const ordered = spread(ranks);
  const kept: RankFacts[] = [];
  let bytes = 0;
  for (const rank of ordered) {
    const own = { ...rank, inputs: [], notes: [] };
    bytes += gzipSync(factsToJson([own]), { level: 1 }).length;
    if (bytes > maxBytes) break;
    kept.push(own);
  }
  if (kept.length === 0) return null;
  const left = ordered.slice(kept.length).flatMap(({ rank }) => (rank === null ? [] : [rank]));
  kept.sort((a, b) => ranks.findIndex((r) => r.folder === a.folder) - ranks.findIndex((r) => r.folder === b.folder));
  const json = factsToJson(kept, { inputs: [], notes: [], otherRanks: [...upload.otherRanks, ...left] });
  return gzipSync(json, { level: 6 });
}

/** Any beginning of this order is spread evenly: by the bits of the index, lowest first. */
function spread<T>(items: readonly T[]): T[] {
  const bits = Math.max(1, Math.ceil(Math.log2(items.length)));
  const reversed = (index: number): number => {
    let out = 0;
    for (let bit = 0; bit < bits; bit++) if (index & (1 << bit)) out |= 1 << (bits - 1 - bit);
    return out;
  };
  return items
    .map((item, index) => ({ item, place: reversed(index) }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}
