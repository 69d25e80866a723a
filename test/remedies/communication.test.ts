import { describe, expect, test } from 'vitest';
import { adviceOf, TREES } from './situations.ts';

const said = (id: string, params: Record<string, string | number | boolean | null>, tree: keyof typeof TREES = 'none'): string => {
  const advice = adviceOf(id, { params, source: TREES[tree]! })!;
  return `${advice.text.en} ${advice.code ?? ''}`;
};

describe('small messages', () => {
  test('the bucket of the framework at hand', () => {
    expect(said('bucket-size', { kind: 'gradients', calls: 300 })).toMatch(/bucket_cap_mb=100/);
    expect(said('bucket-size', { kind: 'gradients' }, 'fsdp1')).toMatch(/--ddp-bucket-size/);
    expect(said('bucket-size', { kind: 'gradients' }, 'fsdp1')).not.toMatch(/bucket_cap_mb/);
  });

  test('gathered parameters: a lower ZeRO stage, never a gradient bucket', () => {
    const text = said('bucket-size', { kind: 'parameters', calls: 144 });
    expect(text).toMatch(/ZeRO-2 or ZeRO-1/);
    expect(text).toMatch(/stage3_param_persistence_threshold/);
    expect(text).not.toMatch(/bucket_cap_mb/);
  });
});

describe('links and networks', () => {
  test('no code change, and never a longer timeout', () => {
    for (const kind of ['pair', 'card', 'type']) {
      const advice = adviceOf('check-link', { params: { kind } })!;
      expect(advice.code).toBeNull();
      expect(advice.edits).toEqual([]);
    }
    expect(said('check-network', { certain: true })).toMatch(/timeouts hide the fault/);
    expect(said('check-network', {})).not.toMatch(/HCCL_RDMA_TIMEOUT|HCCL_EXEC_TIMEOUT/);
  });

  test('PCIe is a topology: choose cards, do not look for a cable', () => {
    expect(said('check-link', { kind: 'type' })).toMatch(/share the faster links/);
    expect(said('check-link', { kind: 'type' })).not.toMatch(/cable/);
  });
});

describe('overlap', () => {
  test('DistributedDataParallel overlaps by itself, so wrapping again is no advice', () => {
    expect(said('overlap-gradient-communication', { ddp: true })).toMatch(/look for a bucket as large as the model/);
    expect(adviceOf('overlap-gradient-communication', { params: { ddp: true } })!.code).toBeNull();
    expect(said('overlap-gradient-communication', { ddp: false })).toMatch(/DistributedDataParallel\(model/);
  });

  test('Megatron has an option', () => {
    const text = said('overlap-gradient-communication', { ddp: false }, 'fsdp1');
    expect(text).toMatch(/--overlap-grad-reduce/);
    expect(text).not.toMatch(/DistributedDataParallel\(model/);
  });

  test('contention is to be measured, nothing is switched off unseen', () => {
    expect(said('ease-contention', { slowdown: 1.8 })).toMatch(/compare the step times/);
  });
});

describe('pipelines and experts', () => {
  test('both shares, now and with more micro-batches', () => {
    expect(said('pipeline-schedule', { stages: 2, microBatches: 2, wanted: 8 })).toMatch(/idles 33\s%; with 8 it idles 11\s%/);
  });

  test('rebalancing never inside the step', () => {
    expect(said('expert-balance', { persistent: true })).toMatch(/never inside it/);
    expect(said('expert-balance', { persistent: false })).not.toMatch(/Moving experts/);
    expect(said('expert-balance', { persistent: false }, 'fsdp1')).toMatch(/--moe-aux-loss-coeff/);
  });
});
