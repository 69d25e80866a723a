/* Which profile a pull request is compared with. */
import { describe, expect, it } from 'vitest';
import { type Ancestry, findBaseline, trendOf, withHistory } from '../../src/app/jobs/baseline.ts';
import { FACTS_SCHEMA } from '../../src/model/facts-schema.ts';
import type { KeptProfile, Profiles } from '../../src/store/ports.ts';
import { caseC } from '../render/reports.ts';

const DAY = 24 * 3600 * 1000;
const NOW = 100 * DAY;
const repository = { id: 7, owner: 'acme', name: 'train' };
const comparing = { repository, job: 'default', baseRef: 'main', headSha: 'head' };
const none = { stepTimeMs: 741, freeShare: null, exposedMs: null, top: [] };

let ids = 0;
function kept(sha: string, over: Partial<KeptProfile> = {}): KeptProfile {
  const id = ++ids;
  return {
    id,
    repoId: 7,
    installationId: 1,
    job: 'default',
    sha,
    branch: 'main',
    pr: null,
    trusted: true,
    origin: `run/${id}`,
    recordedAt: NOW - 2 * DAY,
    metrics: none,
    factsSchema: FACTS_SCHEMA,
    ...over,
  };
}

/** A store of these profiles, with the answers of the real one. */
function storeOf(...all: KeptProfile[]): Pick<Profiles, 'ofCommits' | 'list' | 'ofBranch'> {
  const newest = [...all].sort((a, b) => b.recordedAt - a.recordedAt || b.id - a.id);
  const of = (repoId: number, job: string) => newest.filter((p) => p.repoId === repoId && p.job === job && p.trusted);
  return {
    ofCommits: async (repoId, job, shas) => of(repoId, job).filter((p) => shas.includes(p.sha)),
    ofBranch: async (repoId, job, branch, limit) =>
      of(repoId, job)
        .filter((p) => p.branch === branch)
        .slice(0, limit),
    list: async ({ repoId, job, limit }) => all.filter((p) => p.repoId === repoId && p.job === job).slice(0, limit),
  };
}

/** History of main, newest first; the change left it at `from`. */
function history(from: string | null, ...pages: string[][]): Ancestry & { asked: number } {
  const ancestry = {
    asked: 0,
    async mergeBase() {
      ancestry.asked++;
      return from;
    },
    async *ancestors() {
      for (const page of pages) {
        ancestry.asked++;
        yield page;
      }
    },
  };
  return ancestry;
}

describe('the baseline of a pull request', () => {
  it('is the merge base, with every run of it, newest first, and nothing newer', async () => {
    const ancestry = history('m3', ['m3', 'm2']);
    const store = storeOf(
      kept('m4'),
      kept('m3', { origin: 'first', recordedAt: NOW - 5 * DAY }),
      kept('m3', { origin: 'again' }),
      kept('m2'),
    );
    const found = await findBaseline(store, ancestry, comparing, NOW);
    expect(found).toMatchObject({
      baseline: {
        commit: { sha: 'm3', branch: 'main', baseRef: 'main', mergeBase: 'm3', isFallback: false, commitsBefore: 0, ageMs: 2 * DAY },
        runs: [{ origin: 'again' }, { origin: 'first' }],
      },
    });
    // One request: the ancestors are not asked for.
    expect(ancestry.asked).toBe(1);
  });

  it('else is the nearest commit before it, said to be a fallback', async () => {
    const store = storeOf(kept('m5'), kept('m1'), kept('m0'));
    const found = await findBaseline(store, history('m4', ['m4', 'm3'], ['m2', 'm1', 'm0']), comparing, NOW);
    expect(found).toMatchObject({ baseline: { commit: { sha: 'm1', mergeBase: 'm4', isFallback: true, commitsBefore: 3 } } });
  });

  it('is never what a fork uploaded, what another job did, or what lost its facts', async () => {
    const store = storeOf(kept('m3', { trusted: false }), kept('m3', { job: 'bert' }), kept('m3', { factsSchema: null }), kept('m2'));
    const found = await findBaseline(store, history('m3', ['m3', 'm2']), comparing, NOW);
    expect(found).toMatchObject({ baseline: { commit: { sha: 'm2', isFallback: true }, runs: [{ sha: 'm2' }] } });
  });

  it('is not the commit itself', async () => {
    const store = storeOf(kept('head'), kept('m2'));
    const found = await findBaseline(store, history('head', ['head', 'm2']), comparing, NOW);
    expect(found).toMatchObject({ baseline: { commit: { sha: 'm2' } } });
  });

  it('may be the merged head of a pull request of the repository itself', async () => {
    const store = storeOf(kept('m3', { branch: null, pr: 4 }));
    expect(await findBaseline(store, history('m3'), comparing, NOW)).toMatchObject({ baseline: { commit: { sha: 'm3', branch: null } } });
  });

  it.each([
    ['nothing is kept: GitHub is not asked', storeOf(kept('m3', { repoId: 8 })), history('m3'), 'no-profile', 0],
    ['only newer commits have a profile', storeOf(kept('m9')), history('m3', ['m3', 'm2']), 'not-an-ancestor', 2],
    ['the histories are unrelated', storeOf(kept('m3')), history(null), 'unrelated', 1],
    [
      'the facts are of another version',
      storeOf(kept('m3', { factsSchema: 'npu-advisor.facts/0' })),
      history('m3', ['m3']),
      'other-version',
      2,
    ],
  ])('is none when %s', async (_, store, ancestry, reason, asked) => {
    expect(await findBaseline(store, ancestry, comparing, NOW)).toEqual({ none: { branch: 'main', reason } });
    expect(ancestry.asked).toBe(asked);
  });

  it('has a trend beside it: one point a commit, oldest first, without the commit itself', async () => {
    const at = (day: number) => ({ recordedAt: NOW - day * DAY });
    const store = storeOf(
      kept('a', at(9)),
      kept('b', at(8)),
      kept('b', { ...at(7), origin: 'again' }),
      kept('head', at(1)),
      kept('c', { ...at(2), branch: 'dev' }),
      kept('d', { ...at(3), metrics: { ...none, stepTimeMs: null } }),
    );
    const trend = await trendOf(store, comparing, none);
    expect(trend?.points.map(({ sha, at: when }) => [sha, (NOW - when) / DAY])).toEqual([
      ['a', 9],
      ['b', 7],
    ]);
    expect(await trendOf(storeOf(), comparing, none)).toBeNull();
  });

  it('and a report says why it was compared with nothing where the branch has a history', async () => {
    for (const lang of ['en', 'zh'] as const) {
      const { report } = caseC(lang);
      const search = { none: { branch: 'main', reason: 'not-an-ancestor' } } as const;
      const with1 = await withHistory(storeOf(kept('a')), comparing, search, { ...report, comparison: null });
      expect(with1.notes.at(-1)).toMatch(lang === 'en' ? /^Not compared with `main`: neither the merge base/ : /^未与 `main` 对比：/);
      expect(with1.views).toMatchObject({ baseline: search.none, trend: { branch: 'main' } });
      const with2 = await withHistory(storeOf(), comparing, search, { ...report, comparison: null });
      expect(with2.notes).toEqual(report.notes);
    }
  });
});
