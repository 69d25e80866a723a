import { describe, expect, test } from 'vitest';
import type { Fault } from '../../lab/simulator/index.ts';
import type { RankFacts } from '../../src/model/facts.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { accuracy, checkOf, factsOf, findingOf, reportFor, reportOf, simulated } from '../support/simulated.ts';

const RULE = 'unfused-optimizer';
const plain = (text: string): string => text.replaceAll('\u00a0', ' ');
const foreach: Fault = { kind: 'unfused-optimizer' };
const loop: Fault = { kind: 'unfused-optimizer', how: 'loop' };
const fill: Fault = { kind: 'zero-fill' };

describe('quiet', () => {
  test('a fused update', async () => {
    const check = checkOf(await reportFor({ ranks: 2 }), RULE);
    expect(check.outcome).toBe('pass');
    expect(plain(check.reason)).toMatch(/^the update \(`fused`\) takes 3\.9 ms per step; a fused one could save at most 0\.0 ms$/);
  });

  test('a loop of small kernels that starve the card is told by small-op-fragmentation alone', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'small-ops' }] });
    const owner = findingOf(report, 'small-op-fragmentation')!;
    expect(owner.symptomOf).toBeNull();
    const own = findingOf(report, RULE);
    expect(own?.symptomOf ?? owner.id).toBe(owner.id);
    expect(own?.saving?.perStepMs.ceiling ?? 0).toBe(0);
  });

  test('hidden: the loader sets the pace', async () => {
    const report = await reportFor({ ranks: 2, faults: [{ kind: 'slow-loader', sampleMs: 450 }, foreach] });
    expect(checkOf(report, RULE).outcome).toBe('pass');
  });

  test.each(['SGD', 'DistributedOptimizer', ''])('no fused update that saves passes is known for %j', async (name) => {
    const { ranks } = await simulated({ ranks: 2, faults: [foreach] });
    const renamed = ranks.map(
      (r): RankFacts => ({ ...r, optimizers: { ...r.optimizers!, calls: r.optimizers!.calls.map((c) => ({ ...c, name })) } }),
    );
    expect(checkOf(reportOf(renamed), RULE).outcome).toBe('pass');
  });

  test('an operation whose passes are not known claims nothing', async () => {
    const { ranks } = await simulated({ ranks: 2, faults: [foreach] });
    const unknown = ranks.map(
      (r): RankFacts => ({ ...r, optimizers: { ...r.optimizers!, calls: r.optimizers!.calls.map((c) => ({ ...c, passes: Number.NaN })) } }),
    );
    expect(checkOf(reportOf(unknown), RULE).outcome).toBe('pass');
  });

  test('without host operators: not applicable', async () => {
    const { ranks } = await simulated({ ranks: 2, faults: [foreach] });
    const bare = ranks.map((r): RankFacts => ({ ...r, optimizers: null }));
    expect(checkOf(reportOf(bare), RULE)).toMatchObject({ outcome: 'notApplicable' });
  });
});

describe('loud', () => {
  test('foreach: the passes, all ranks, the line, a ceiling within 20 % and never a likely value', async () => {
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [foreach] }, foreach, RULE);
    expect(plain(finding.title)).toBe('`AdamW` passes over all parameters 21 times per step, a fused update 7 times');
    expect(finding).toMatchObject({ ranks: [0, 1], saving: { basis: 'bound', perStepMs: { floor: 0, likely: null } } });
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.locations[0]).toMatchObject({ line: 98 });
    expect(finding.caveats.join()).toMatch(/upper bound, the next profile decides/);
  });

  test('a loop over large parameters, which does not starve the card', async () => {
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [loop] }, loop, RULE);
    expect(plain(finding.title)).toBe('`AdamW` updates one parameter after the other: 192 kernels per step');
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(findingOf(await reportFor({ ranks: 2, faults: [loop] }), 'small-op-fragmentation')).toBeUndefined();
  });

  test('gradients filled with zeros: a likely saving', async () => {
    const { finding, headline, truth } = await accuracy({ ranks: 2, faults: [fill] }, fill, RULE);
    expect(plain(finding.title)).toBe('zero_grad fills 160 gradients with zeros in every step');
    expect(finding.saving).toMatchObject({ basis: 'modelled' });
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.locations[0]).toMatchObject({ line: 92 });
  });

  test('a part of the parameters on each stage of a pipeline', async () => {
    const { finding, headline, truth } = await accuracy({ ranks: 2, pp: 2, layers: 8, microBatches: 4, faults: [foreach] }, foreach, RULE);
    expect(finding.ranks).toEqual([0, 1]);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
  });
});

describe('options', () => {
  test.each([
    ['minShare', 0.5, foreach],
    ['minMs', 1_000, foreach],
    ['minFillShare', 0.5, fill],
  ] as const)('a higher %s leaves no finding', async (name, value, fault) => {
    expect(checkOf(await reportFor({ ranks: 2, faults: [fault] }, { [RULE]: { [name]: value } }), RULE).outcome).toBe('pass');
  });
});

describe.skipIf(!HAVE_PROFILES)(`real profiles${WHY_SKIPPED}`, () => {
  test.each([
    ['level0', 2.3],
    ['level1', 2.3],
    ['level2', 2.3],
  ] as const)('text/%s: foreach SGD, nothing to gain', async (set, ms) => {
    const check = checkOf(reportOf(await factsOf(PATHS[set])), RULE);
    expect(check.outcome).toBe('pass');
    const found = /the update \(`(\w+)`\) takes ([\d.]+) ms per step; a fused one could save at most 0\.0 ms/.exec(plain(check.reason))!;
    expect(found[1]).toBe('foreach');
    expect(Math.abs(Number(found[2]) - ms)).toBeLessThan(0.15);
  });

  test('a real loop of small kernels that starve the card is one finding', async () => {
    const report = reportOf(await factsOf(PATHS.singleProcess));
    const owner = findingOf(report, 'small-op-fragmentation')!;
    expect(owner.title).toMatch(/^The optimizer launches/);
    expect(findingOf(report, RULE)).toMatchObject({ symptomOf: owner.id, severity: 'info', saving: { perStepMs: { ceiling: 0 } } });
  });

  test('st/level2 has no trace: not applicable', async () => {
    expect(checkOf(reportOf(await factsOf(PATHS.st)), RULE).outcome).toBe('notApplicable');
  });
});
