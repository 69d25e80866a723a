import { describe, expect, test } from 'vitest';
import { repository } from './repository.ts';
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

  test.each([
    [
      'FSDP',
      'from torch.distributed.fsdp import FullyShardedDataParallel\n',
      /wrap larger blocks/,
      /bucket_cap_mb|DistributedDataParallel/,
    ],
    ['fully_shard', 'from torch.distributed.fsdp import fully_shard\n', /wrap larger blocks/, /bucket_cap_mb|DistributedDataParallel/],
    ['the Trainer', 'from transformers import Trainer\n', /`ddp_bucket_cap_mb`/, /`bucket_cap_mb`|wrap larger/],
  ])('%s is no DistributedDataParallel', (_, head, said, unsaid) => {
    const advice = adviceOf('bucket-size', { params: { kind: 'gradients', calls: 30 }, source: repository({ 'train.py': head }) })!;
    expect(advice.text.en).toMatch(said);
    expect(`${advice.text.en} ${advice.code}`).not.toMatch(unsaid);
  });

  test('the Trainer broadcasts buffers by an option', () => {
    const source = repository({ 'train.py': 'from transformers import Trainer\n', 'a.yaml': 'ddp_broadcast_buffers: true\n' });
    const advice = adviceOf('broadcast-buffers-off', { source })!;
    expect(advice.text.en).toContain('`ddp_broadcast_buffers`');
    expect([advice.code, advice.locations]).toEqual([null, [{ file: 'a.yaml', line: 1, symbol: null }]]);
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

  test.each([
    ['FSDP', 'from torch.distributed.fsdp import FullyShardedDataParallel\n', { op: 'reduceScatter', ddp: false }, /wrap each layer/],
    ['FSDP2', 'from torch.distributed.fsdp import fully_shard\n', { op: 'reduceScatter', ddp: false }, /wrap each layer/],
    ['accelerate', 'from accelerate import Accelerator\n', { op: 'allReduce', ddp: false }, /The framework wraps the model/],
  ] as const)('%s overlaps by itself, so wrapping in DDP is no advice', (_, text, params, told) => {
    const advice = adviceOf('overlap-gradient-communication', { params, source: repository({ 'train.py': text }) })!;
    expect(advice.text.en).toMatch(told);
    expect(advice.text.en).not.toMatch(/wrap the model in DistributedDataParallel/);
    expect(advice.code).toBeNull();
  });

  test('contention is to be measured, nothing is switched off unseen', () => {
    expect(said('ease-contention', { slowdown: 1.8 })).toMatch(/compare the step times/);
  });
});

describe('pipelines and experts', () => {
  test('both shares, now and with more micro-batches', () => {
    expect(said('pipeline-schedule', { stages: 2, microBatches: 2, wanted: 8 })).toMatch(/idles 33\s%; with 8 it idles 11\s%/);
  });

  test('A25: rebalancing never inside the step', () => {
    expect(said('expert-balance', { persistent: true })).toMatch(/never inside it/);
    expect(said('expert-balance', { persistent: false })).not.toMatch(/Moving experts/);
    expect(said('expert-balance', { persistent: false }, 'fsdp1')).toMatch(/--moe-aux-loss-coeff/);
  });
});
