import { describe, expect, test } from 'vitest';
import { jobFacts } from '../../src/facts/job/index.ts';
import { lateness } from '../../src/facts/job/lateness.ts';
import { jobSteps } from '../../src/facts/job/steps.ts';
import { world } from '../../src/facts/job/world.ts';
import { findCycle } from '../../src/facts/rank/fragments.ts';
import { outermost } from '../../src/facts/rank/host-ranges.ts';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { windowAt } from '../../src/facts/rank/windows.ts';
import { NO_LINKS } from '../../src/importers/link-tables.ts';
import type { RankFacts } from '../../src/model/facts.ts';
import { kernelDetails, readOnly, trace, ts } from '../support/profile-text.ts';
import { simulated } from '../support/simulated.ts';

const base = rankFacts(await readOnly({ 'rank0/trace_view.json': trace({ steps: 1 }), 'rank0/kernel_details.csv': kernelDetails() }));

/** A rank with these step times and nothing else of interest. */
function rankWith(rank: number | null, stepMs: readonly number[], more: Partial<RankFacts> = {}): RankFacts {
  const step = base.steps[0]!;
  return { ...base, rank, steps: stepMs.map((ms, i) => ({ ...step, id: 10 + i, breakdown: { ...step.breakdown, stepMs: ms } })), ...more };
}

describe('the steps of a job', () => {
  test('of four and more captured steps the first is dropped and named', () => {
    const steps = jobSteps([rankWith(0, [150, 100, 101, 99])]);
    expect(steps).toMatchObject({ used: [11, 12, 13], stepTimeMs: 100, basis: 'distance', noiseMs: 1 });
    expect(steps.dropped).toEqual([{ step: 10, why: 'first', ms: 150, medianMs: 100 }]);
  });

  test('of three the first is dropped only when it is far slower', () => {
    expect(jobSteps([rankWith(0, [150, 100, 101])]).used).toEqual([11, 12]);
    expect(jobSteps([rankWith(0, [101, 100, 102])]).used).toEqual([10, 11, 12]);
  });

  test('one step is a host step without noise', () => {
    expect(jobSteps([rankWith(0, [120])])).toMatchObject({ used: [10], stepTimeMs: 120, basis: 'host-step', noiseMs: null });
  });

  test('the slowest rank sets the pace', () => {
    expect(jobSteps([rankWith(0, [100, 100]), rankWith(1, [110, 130]), rankWith(2, [90, 90])])).toMatchObject({
      pace: 1,
      perStepMs: [110, 130],
    });
  });

  test('times that are not known are no times', () => {
    const steps = jobSteps([rankWith(0, [Number.NaN, Number.NaN, Number.NaN, Number.NaN])]);
    expect(steps).toMatchObject({ stepTimeMs: null, noiseMs: null, perStepMs: [] });
    expect(jobSteps([])).toMatchObject({ basis: 'none', stepTimeMs: null });
  });
});

describe('how many ranks there are', () => {
  const group = (ranks: number[]) => [{ hash: '1', communicator: 'g', role: 'default_group', groupRank: 0, ranks }];

  test('the metadata know it best, then the groups, then link ids', () => {
    const links = { ids: new Map([['1', [0, 1, 2, 3]]]), links: NO_LINKS, packets: [] };
    expect(world([rankWith(0, [1], { worldSize: 8, groups: group([0, 1]), links })])).toMatchObject({
      size: 8,
      basis: 'metadata',
      complete: false,
    });
    expect(world([rankWith(0, [1], { worldSize: null, groups: group([0, 1]), links })])).toMatchObject({
      size: 2,
      basis: 'groups',
      missing: [1],
    });
    expect(world([rankWith(0, [1], { worldSize: null, groups: [], links })])).toMatchObject({
      size: 4,
      basis: 'links',
      missing: [1, 2, 3],
    });
  });

  test('link ids of groups that do not divide each other name ranks, not how many there are', () => {
    const links = {
      ids: new Map([
        ['dp', [0, 1, 2, 3]],
        ['pp', [0, 1, 2, 3, 4]],
      ]),
      links: NO_LINKS,
      packets: [],
    };
    expect(world([rankWith(0, [1], { worldSize: null, groups: [], links })])).toMatchObject({
      size: null,
      missing: [1, 2, 3, 4],
      complete: false,
    });
    const tp = {
      ids: new Map([
        ['tp', [0, 1]],
        ['all', [0, 1, 2, 3]],
      ]),
      links: NO_LINKS,
      packets: [],
    };
    expect(world([rankWith(0, [1], { worldSize: null, groups: [], links: tp })])).toMatchObject({ size: 4, basis: 'links' });
  });

  test('without any of them nothing is said to be missing', () => {
    expect(world([rankWith(0, [1], { worldSize: null, groups: [], links: null })])).toMatchObject({
      size: null,
      missing: [],
      complete: null,
    });
  });

  test('a rank above the stated size makes the job larger', () => {
    expect(world([rankWith(9, [1], { worldSize: 4 })])).toMatchObject({ size: 10, complete: false });
  });

  test('folders of unknown rank may be the missing ones', () => {
    expect(world([rankWith(null, [1], { worldSize: 2 }), rankWith(null, [1], { worldSize: 2 })])).toMatchObject({
      size: 2,
      missing: [],
      complete: null,
    });
    expect(world([rankWith(null, [1], { worldSize: 8 }), rankWith(0, [1], { worldSize: 8 })]).complete).toBe(false);
  });
});

describe('clocks and arrivals', () => {
  test('offsets of any size are found to the µs, and the latest rank is the slow one', async () => {
    const plain = await simulated({ ranks: 4, faults: [{ kind: 'slow-rank', rank: 2 }] });
    const skewed = await simulated({ ranks: 4, clockSkewUs: [0, 120_000, -3_000_000, 77], faults: [{ kind: 'slow-rank', rank: 2 }] });
    const [a, b] = [jobFacts(plain.ranks), jobFacts(skewed.ranks)];
    expect(b.clock.usable).toBe(true);
    for (const job of [a, b]) {
      expect(Math.max(...job.clock.mad)).toBeLessThan(100_000);
      const late = lateness(job);
      expect(late.culprits.map((c) => c.rank)).toEqual([2]);
      expect(late.culprits[0]!.steps).toBe(3);
      expect(late.causedMs[2]!).toBeGreaterThan(5);
      expect(late.waitedMs[2]!).toBeLessThan(0.5);
    }
    expect(lateness(b).causedMs[2]!).toBeCloseTo(lateness(a).causedMs[2]!, 1);
  });

  test('every collective of all ranks is one match, complete when its group is here', async () => {
    const { ranks } = await simulated({ ranks: 4, pp: 2 });
    const job = jobFacts(ranks);
    expect(job.matches.length).toBeGreaterThan(10);
    for (const m of job.matches) expect(m.ranks.length).toBe(m.groupSize ?? m.ranks.length);
    expect(job.world).toMatchObject({ size: 4, complete: true });
  });
});

describe('small helpers', () => {
  test('the loop body of a run is its shortest repeating sequence', () => {
    expect(findCycle([1, 2, 3, 1, 2, 3, 1, 2, 3])).toEqual({ period: 3, repeats: 3, pattern: [1, 2, 3] });
    expect(findCycle([5, 5, 5, 5])).toMatchObject({ period: 1, repeats: 4 });
    expect(findCycle([1, 2, 3, 4, 5, 6])).toMatchObject({ period: 0 });
  });

  test('ranges inside another one of the same thread are dropped', () => {
    const kept = outermost([
      { start: 5, end: 8, tid: 1 },
      { start: 0, end: 10, tid: 1 },
      { start: 5, end: 8, tid: 2 },
      { start: 10, end: 12, tid: 1 },
    ]);
    expect(kept.map((r) => [r.tid, r.start])).toEqual([
      [1, 0],
      [2, 5],
      [1, 10],
    ]);
  });

  test('an instant belongs to the step that has begun and not ended', () => {
    const windows = [
      { id: 1, start: 0, end: 10, hostEnd: 9 },
      { id: 2, start: 10, end: 20, hostEnd: 20 },
    ];
    expect([-1, 0, 9.9, 10, 19, 20].map((at) => windowAt(windows, at))).toEqual([-1, 0, 0, 1, 1, -1]);
  });

  test('casts are precision and a fused matmul is a matmul, whatever their names hold', async () => {
    const types = [
      'Transpose',
      'TransData',
      'TensorMove',
      'AsStrided',
      'ViewCopy',
      'Cast',
      'Add',
      'TransposeBatchMatMul',
      'TransposeQuantBatchMatMul',
    ];
    const rows = types.map((type, i) => `${type}_x,${type},AI_CORE,${ts(i * 10)},5`);
    const facts = rankFacts(
      await readOnly({ 'rank0/kernel_details.csv': `Name,Type,Accelerator Core,Start Time(us),Duration(us)\n${rows.join('\n')}\n` }),
    );
    expect(facts.layout!.byType.map((t) => t.type).sort()).toEqual(['AsStrided', 'TensorMove', 'TransData', 'Transpose', 'ViewCopy']);
  });
});
