import { describe, expect, test } from 'vitest';
import { type JobSpec, simulate } from '../../lab/simulator/index.ts';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { countedMedian } from '../support/grid.ts';
import { readOnly, traceEvents, ts } from '../support/profile-text.ts';
import { accuracy, checkOf, findingOf, reportFor, reportOf } from '../support/simulated.ts';

const RULE = 'dataloader-stall';

describe('quiet', () => {
  test('a healthy loader is no finding', async () => {
    const report = await reportFor({ ranks: 2 });
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass' });
    expect(findingOf(report, RULE)).toBeUndefined();
  });

  test('a long fetch that hides behind queued device work is no finding', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'hidden-loader' }] });
    expect(findingOf(report, RULE)).toBeUndefined();
    expect(report.findings.filter((f) => (f.saving?.perStepMs.ceiling ?? 0) > 0)).toEqual([]);
  });

  test('Python frames of a loader, nested as they are, count nothing by themselves or again', async () => {
    // Other tools add up every frame whose name holds "dataloader", the outer ones with the inner ones.
    const frames = [
      'torch/utils/data/dataloader.py(631): __next__',
      'torch/utils/data/dataloader.py(675): _next_data',
      'my_dataloader.py(7): f',
    ];
    const events = traceEvents({ steps: 3 });
    for (let s = 0; s < 3; s++)
      for (const [i, name] of frames.entries())
        events.push({ ph: 'X', name, pid: 1, tid: 11, ts: ts(s * 10_000 + 5 + i), dur: 4_000 - 2 * i, cat: 'python_function', args: {} });
    const read = async (list: object[]) => rankFacts(await readOnly({ 'rank0/trace_view.json': JSON.stringify(list) }));
    const [bare, framed] = [await read(traceEvents({ steps: 3 })), await read(events)];
    expect(framed.loader!.fetches).toEqual(bare.loader!.fetches);
    expect(findingOf(reportOf([framed]), RULE)).toBeUndefined();
    // Without a fetch event they do not make one.
    const without = await read(events.filter((e) => !('name' in e && String(e.name).startsWith('enumerate(DataLoader)'))));
    expect(without.loader).toBeNull();
    expect(checkOf(reportOf([without]), RULE)).toMatchObject({ outcome: 'notApplicable' });
  });

  test('a rank that waits for a slow card is not said to wait for data', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'slow-rank', rank: 1 }] });
    expect(findingOf(report, RULE)).toBeUndefined();
  });
});

describe('loud', () => {
  const all = { kind: 'slow-loader' } as const;
  const one = { kind: 'slow-loader', ranks: [1] } as const;
  const single = { kind: 'slow-loader', single: true } as const;

  test('slow workers of all ranks: right ranks, saving within 20 %', async () => {
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [all] }, all, RULE);
    expect(finding.ranks).toEqual([0, 1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.saving!.basis).toBe('modelled');
    expect(finding.title).toMatch(/both ranks/);
  });

  test('slow workers of one rank: that rank is the culprit, and it is not called a slow card', async () => {
    const spec = { ranks: 2, faults: [{ ...one, ranks: [...one.ranks] }] };
    const { finding, headline, truth } = await accuracy(spec, spec.faults[0]!, RULE);
    expect(finding.ranks).toEqual([1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    const report = await reportFor(spec);
    expect(findingOf(report, 'slow-rank')).toBeUndefined();
    const waiting = findingOf(report, 'hccl-sync-wait');
    if (waiting !== undefined) expect(waiting.symptomOf).toBe(finding.id);
  });

  test('no workers: the evidence names the iterator', async () => {
    const spec = { ranks: 2, faults: [single] };
    const { finding, headline, truth } = await accuracy(spec, single, RULE);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.evidence[0]!.text).toContain('`_SingleProcessDataLoaderIter.__next__`');
    expect(finding.evidence[0]!.durationUs).toBeGreaterThan(1_000);
    expect(finding.locations[0]).toMatchObject({ file: '/workspace/repo/train.py', line: 88, provenBy: 'profile' });
  });

  test('a profile without call stacks gives the same finding without a place', async () => {
    const report = await reportFor({ ranks: 2, withStack: false, faults: [single] });
    const finding = findingOf(report, RULE)!;
    expect(finding.ranks).toEqual([0, 1]);
    expect(finding.locations).toEqual([]);
  });

  test('Level0 is enough', async () => {
    expect(findingOf(await reportFor({ ranks: 2, level: 0, faults: [single] }), RULE)!.ranks).toEqual([0, 1]);
  });

  test('while the workers set the pace, other causes save nothing: told as a bound with the loader, or not at all behind a larger one', async () => {
    const spec: JobSpec = { ranks: 2, faults: [all, { kind: 'layout' }] };
    const report = await reportFor(spec);
    const loader = findingOf(report, RULE)!;
    expect(loader.ranks).toEqual([0, 1]);
    const masked = findingOf(report, 'transpose-hotspot')!;
    expect(masked).toMatchObject({
      maskedBy: [loader.id],
      severity: 'medium',
      saving: { basis: 'bound', perStepMs: { floor: 0, likely: null } },
    });
    // What is claimed is the loader's own saving; together they save what the simulator says.
    expect(report.totals.claimedMsPerStep.likely).toBeCloseTo(loader.saving!.perStepMs.likely!, 3);
    const truth = countedMedian(simulate(spec)) - countedMedian(simulate({ ...spec, faults: [] }));
    expect(loader.saving!.perStepMs.likely! + masked.saving!.perStepMs.ceiling).toBeCloseTo(truth, 0);

    const larger = await reportFor({ ranks: 2, faults: [{ ...all, sampleMs: 450 }, { kind: 'layout' }] });
    expect(checkOf(larger, 'transpose-hotspot')).toMatchObject({ outcome: 'pass' });
    expect(checkOf(larger, 'transpose-hotspot').reason).toMatch(/reporting floor/);
  });
});

describe('options', () => {
  const spec = { ranks: 2, faults: [{ kind: 'slow-loader', single: true } as const] };
  test.each([
    ['minShare', 0.5],
    ['minMs', 1_000],
  ])('a higher %s silences the rule', async (name, value) => {
    expect(findingOf(await reportFor(spec, { [RULE]: { [name]: value, intermittentShare: 1 } }), RULE)).toBeUndefined();
  });

  test('a lower minMs and minShare report the fetch that finds its batch ready, and the floor of the report keeps it quiet', async () => {
    const report = await reportFor({ ranks: 2 }, { [RULE]: { minMs: 0, minShare: 0 } });
    expect(findingOf(report, RULE)).toBeUndefined();
    expect(checkOf(report, RULE).outcome).toBe('pass');
  });
});
