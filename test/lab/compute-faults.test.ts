import { describe, expect, test } from 'vitest';
import { type Fault, type JobSpec, simulate, trueSavingMs } from '../../lab/simulator/index.ts';

const share = (spec: JobSpec, fault: Fault): number => trueSavingMs(spec, fault) / simulate(spec).medianStepMs;

describe('what slows the kernels', () => {
  const faults: Fault[] = [
    { kind: 'aicpu-op' },
    { kind: 'aicpu-op', of: 'index' },
    { kind: 'cast-pair' },
    { kind: 'weight-cast' },
    { kind: 'vector-chain' },
    { kind: 'few-blocks' },
    { kind: 'loose-matmul' },
    { kind: 'frequency-drop', ranks: [1] },
  ];

  test.each(faults)('%j costs between 3 and 30 percent of the step', (fault) => {
    const cost = share({ ranks: 2, faults: [fault] }, fault);
    expect(cost).toBeGreaterThan(0.03);
    expect(cost).toBeLessThan(0.3);
  });

  test.each<Fault>([{ kind: 'idle-pipes' }, { kind: 'frequency-drop', ranks: [1], idle: true }])('%j costs nothing', (fault) => {
    expect(trueSavingMs({ ranks: 2, layers: 4, faults: [fault] }, fault)).toBeCloseTo(0, 6);
  });

  test('casts around a kernel that computes in fp32 are the same work with the fault and without', () => {
    const fault: Fault = { kind: 'cast-pair', used: true };
    expect(trueSavingMs({ ranks: 2, layers: 4, faults: [fault] }, fault)).toBeCloseTo(0, 6);
  });

  test('a slow clock hardly slows what waits for memory, and not the AI CPU', () => {
    const spec: JobSpec = { ranks: 1, layers: 2, steps: 1, faults: [{ kind: 'frequency-drop' }, { kind: 'aicpu-op' }] };
    const times = (of: JobSpec): Map<string, number> => {
      const sums = new Map<string, number>();
      for (const task of simulate(of).perRank[0]!.record.tasks)
        if (task.kernel && task.step === 0) sums.set(task.kernel.core, (sums.get(task.kernel.core) ?? 0) + task.duration);
      return sums;
    };
    const slow = times(spec);
    const nominal = times({ ...spec, faults: [{ kind: 'aicpu-op' }] });
    const ratio = (core: string): number => slow.get(core)! / nominal.get(core)!;
    expect(ratio('AI_CORE')).toBeCloseTo(1.25, 2);
    expect(ratio('AI_VECTOR_CORE')).toBeCloseTo(1.1, 2);
    expect(ratio('AI_CPU')).toBeCloseTo(1, 2);
  });
});
