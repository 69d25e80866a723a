import { describe, expect, test } from 'vitest';
import type { JobSpec } from '../../lab/simulator/index.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { factsOf, simulated } from '../support/simulated.ts';

async function callsOf(spec: Partial<JobSpec>) {
  const { ranks } = await simulated({ ranks: 2, ...spec });
  return ranks[0]!.optimizers!.calls;
}

describe('kinds of update', () => {
  test('one call a step, fused', async () => {
    const calls = await callsOf({});
    expect(calls.map((c) => [c.step, c.name, c.kind, c.nodes.length])).toEqual([0, 1, 2, 3].map((s) => [s, 'AdamW', 'fused', 8]));
    expect(calls[0]!.passes).toBeNaN();
  });

  test('foreach: 21 passes whatever pieces the list is cut into, and how many parameters', async () => {
    const calls = await callsOf({ faults: [{ kind: 'unfused-optimizer' }] });
    for (const c of calls) expect(c).toMatchObject({ kind: 'foreach', passes: 21, tensors: 160, period: 0 });
    expect(calls[0]!.nodes).toHaveLength(16);
  });

  test('a loop: one turn is the update of a parameter', async () => {
    const calls = await callsOf({ faults: [{ kind: 'unfused-optimizer', how: 'loop' }] });
    for (const c of calls) expect(c).toMatchObject({ kind: 'loop', passes: 21, period: 8, repeats: 24, tensors: 24 });
    const small = await callsOf({ faults: [{ kind: 'small-ops' }] });
    for (const c of small) expect(c).toMatchObject({ kind: 'loop', period: 7, repeats: 80 });
  });

  test('no kernel of the next forward or of the backward is taken for the update', async () => {
    for (const faults of [[], [{ kind: 'unfused-optimizer' as const }]]) {
      const { ranks } = await simulated({ ranks: 2, faults });
      for (const { tape, optimizers } of ranks)
        for (const c of optimizers!.calls) for (const node of c.nodes) expect(tape!.types[tape!.type[node]!]).toMatch(/^(Apply|Foreach)/);
    }
  });
});

test('gradients filled with zeros are counted; dropped ones leave nothing', async () => {
  const filled = (await simulated({ ranks: 2, faults: [{ kind: 'zero-fill' }] })).ranks[0]!.optimizers!;
  expect(filled.fills.map((f) => [f.step, f.nodes.length])).toEqual([0, 1, 2, 3].map((s) => [s, 160]));
  expect((await simulated({ ranks: 2 })).ranks[0]!.optimizers!.fills).toEqual([]);
});

describe.skipIf(!HAVE_PROFILES)(`real profiles${WHY_SKIPPED}`, () => {
  test('text/level1: SGD with momentum and weight decay over the 16 parameters of an AlexNet, 2.3 ms in 11 passes', async () => {
    for (const r of await factsOf(PATHS.level1)) {
      expect(r.optimizers!.calls).toHaveLength(1);
      expect(r.optimizers!.calls[0]).toMatchObject({ name: 'SGD', kind: 'foreach', passes: 11, tensors: 16 });
      expect(r.optimizers!.calls[0]!.ns / 1e6).toBeCloseTo(2.26, 1);
      expect(r.optimizers!.fills).toEqual([]);
    }
  });

  test('a trace of 2024 alone: Adam over 10 parameters one after the other, 8 kernels each', async () => {
    const [r] = await factsOf(PATHS.singleProcess);
    expect(r!.optimizers!.calls[0]).toMatchObject({ name: 'Adam', kind: 'loop', period: 8, repeats: 10, tensors: 10 });
    expect(r!.optimizers!.calls[0]!.types.join()).toBe('Mul,Axpy,Mul,Addcmul,Sqrt,RealDiv,Add,Addcdiv');
    // Whether Mul reads a scalar or a tensor is not told by its name.
    expect(r!.optimizers!.calls[0]!.passes).toBeNaN();
  });

  test('st/level2 has no trace, so no ranges', async () => {
    for (const r of await factsOf(PATHS.st)) expect(r.optimizers).toBeNull();
  });
});
