/* What is kept of a job to compare others with. */
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { keptFacts } from '../../src/engine/kept-facts.ts';
import { digestFromJson } from '../../src/model/facts-json.ts';
import { simulated } from '../support/simulated.ts';

const read = (bytes: Buffer | null) => digestFromJson(gunzipSync(bytes!).toString());

describe('kept facts', async () => {
  const { ranks } = await simulated({ ranks: 4, layers: 1, steps: 2, seed: 5 });
  const upload = { inputs: ranks.flatMap((r) => r.inputs), notes: [], otherRanks: [9] };

  it('are the facts of every rank, without lists of files and remarks', () => {
    const { ranks: kept, upload: said } = read(keptFacts(ranks, upload, 1 << 20));
    expect(kept.map(({ rank }) => rank)).toEqual([0, 1, 2, 3]);
    expect(kept[2]?.steps).toEqual(ranks[2]?.steps);
    expect(kept.flatMap(({ inputs, notes }) => [...inputs, ...notes])).toEqual([]);
    expect(said).toEqual({ inputs: [], notes: [], otherRanks: [9] });
  });

  it('of a job that is too large are those of ranks spread over it, the same ones whatever fits', () => {
    const size = keptFacts(ranks, upload, 1 << 20)!.length / ranks.length;
    const two = read(keptFacts(ranks, upload, size * 2.6));
    expect(two.ranks.map(({ rank }) => rank)).toEqual([0, 2]);
    expect(two.upload?.otherRanks).toEqual([9, 1, 3]);
    expect(read(keptFacts(ranks, upload, size * 1.4)).ranks.map(({ rank }) => rank)).toEqual([0]);
    expect(keptFacts(ranks, upload, 100)).toBeNull();
  });
});
