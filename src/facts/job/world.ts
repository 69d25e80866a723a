import type { RankFacts } from '../../model/facts.ts';

/** How many ranks the job has and which of them are here. */
export interface World {
  readonly size: number | null;
  readonly basis: 'metadata' | 'groups' | 'links' | null;
  readonly present: readonly number[];
  readonly missing: readonly number[];
  /** False when some rank of the job is known not to be here; null when it cannot be told. */
  readonly complete: boolean | null;
}

export function world(ranks: readonly RankFacts[], otherRanks: readonly number[] = []): World {
  const present = [...new Set(ranks.map((r) => r.rank).filter((r): r is number => r !== null))].sort((a, b) => a - b);
  let size: number | null = null;
  let basis: World['basis'] = null;
  for (const r of ranks) {
    if (r.worldSize !== null && r.worldSize > (size ?? 0)) {
      size = r.worldSize;
      basis = 'metadata';
    }
  }
  if (size === null) {
    for (const r of ranks) {
      for (const g of r.groups) {
        const top = g.ranks.reduce((a, b) => Math.max(a, b), -1) + 1;
        if (top > (size ?? 0)) {
          size = top;
          basis = 'groups';
        }
      }
    }
  }
  const named = new Set<number>(size === null ? otherRanks : []);
  if (size === null) {
    // Only the numbers in link ids tell. Without a gap from 0 on they count inside the group; otherwise they are global ranks,
    // which name some ranks of the job but not how many there are.
    const sizes = new Set<number>();
    for (const r of ranks) {
      for (const ids of r.links?.ids.values() ?? []) {
        const local = ids.length > 0 && ids[0] === 0 && ids[ids.length - 1] === ids.length - 1;
        if (!local) for (const id of ids) named.add(id);
        else sizes.add(ids.length);
      }
    }
    const largest = Math.max(0, ...sizes);
    if (largest > 0) {
      size = largest;
      basis = 'links';
    }
    // Groups split the job evenly. A rank 0 that talks to 0-7 in one group and to 0-8 in another is one of 16, not of 9.
    if ([...sizes].some((n) => largest % n !== 0)) for (let r = 0; r < largest; r++) named.add(r);
    if (named.size > 0) {
      size = null;
      basis = null;
    }
  }
  if (size !== null && present.length > 0) size = Math.max(size, present[present.length - 1]! + 1);
  if (size !== null && size > 1_000_000) size = null;
  const missing: number[] = [];
  if (size !== null) {
    const here = new Set(present);
    for (let r = 0; r < size; r++) if (!here.has(r)) missing.push(r);
  }
  const absent = size === null ? [...named].filter((r) => !present.includes(r)).sort((a, b) => a - b) : missing;
  // Folders without a rank number may be the very ranks that seem to be missing.
  const unnamed = ranks.filter((r) => r.rank === null).length;
  if (unnamed > 0 && absent.length <= unnamed) return { size, basis, present, missing: [], complete: null };
  return { size, basis, present, missing: absent, complete: absent.length > 0 ? false : size === null ? null : true };
}
