import { describe, expect, it } from 'vitest';
import { filesOfShare, shareCount } from '../../src/importers/index.ts';

const rank = (n: number) => [
  { path: `run/rank${n}_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json`, bytes: 1000 + n },
  { path: `run/rank${n}_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv`, bytes: 100 },
  { path: `run/rank${n}_ascend_pt/profiler_info_${n}.json`, bytes: 10 },
];
const files = [...[0, 1, 2, 3, 4].flatMap(rank), { path: 'run/communication_group.json', bytes: 5 }, { path: 'README.md', bytes: 5 }];

describe('shares of one upload', () => {
  it('hold each file once, keep a rank together and are about equal', () => {
    expect(shareCount(files)).toBe(5);
    const shares = [0, 1, 2].map((index) => [...filesOfShare(files, { index, of: 3 })]);
    expect(shares.flat().sort()).toEqual(files.map(({ path }) => path).sort());
    const ranksOf = (paths: string[]) => new Set(paths.map((path) => /rank\d/.exec(path)?.[0]).filter((name) => name !== undefined));
    expect(shares.map((paths) => ranksOf(paths).size).sort()).toEqual([1, 2, 2]);
    expect(new Set(shares.flatMap((paths) => [...ranksOf(paths)])).size).toBe(5);
  });

  it('are the same in whatever order the files are listed', () => {
    const share = { index: 1, of: 2 };
    expect(filesOfShare([...files].reverse(), share)).toEqual(new Set([...filesOfShare(files, share)]));
  });

  it('are made of archives, too, unless loose files lie beside them', () => {
    const archives = [0, 1].map((n) => ({ path: `rank${n}.tar.gz`, bytes: 9 }));
    expect(shareCount(archives)).toBe(2);
    expect(shareCount([...archives, { path: 'x.json', bytes: 1 }])).toBe(0);
  });
});
