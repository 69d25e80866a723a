import { describe, expect, test } from 'vitest';
import { bubbleShare } from '../../src/remedies/rebalance-stages.ts';
import { repository } from './repository.ts';
import { adviceOf } from './situations.ts';

describe('check-slow-rank', () => {
  const advice = (params: Record<string, string | number | null>) => adviceOf('check-slow-rank', { params })!;

  test('slower kernels: frequency, temperature, power; then another card', () => {
    const { text, code } = advice({ reason: 'device', rank: 5 });
    expect(text.en).toMatch(/longer on rank 5\..*frequency, temperature, power limit.*on another card/);
    expect(code).toBeNull();
  });

  test('slower host: core binding, unless the release has none', () => {
    expect(advice({ reason: 'host', rank: 5 }).code).toContain('export CPU_AFFINITY_CONF=2');
    const old = adviceOf('check-slow-rank', { params: { reason: 'host', rank: 5 }, torchNpu: '2.1.0' })!;
    expect(old.text.en).not.toContain('CPU_AFFINITY_CONF');
    expect(old.code).toContain('gc.freeze()');
  });

  test('more work: lengths and experts, not hardware', () => {
    expect(advice({ reason: 'more-work', rank: 1 }).text.en).not.toMatch(/temperature|CPU/);
  });

  test('rank 0 is a rank, and an unknown rank is not', () => {
    expect(advice({ reason: 'device', rank: 0 }).text.zh).toContain('卡 0');
    expect(adviceOf('check-slow-rank', { params: { rank: null } }, { ranks: [] })!.text.en).toContain('Rank ? is late');
  });
});

describe('find-late-rank', () => {
  test('changing late-comers: bind cores and even out, never a longer timeout', () => {
    const { text, code } = adviceOf('find-late-rank', { params: { kind: 'jitter' } })!;
    expect(text.en).toContain('a faster network or a longer timeout does not shorten it');
    expect(code).toContain('CPU_AFFINITY_CONF=2');
  });

  test('missing ranks: how many, and how to upload', () => {
    const { text } = adviceOf('find-late-rank', { params: { kind: 'ranks-missing', present: 6, worldSize: 8 } })!;
    expect(text.en).toContain('among the 2 that were not uploaded');
    expect(text.zh).toContain('未上传的 2 张卡');
    expect(adviceOf('find-late-rank', { params: { kind: 'ranks-missing', present: 6, worldSize: null } })!.text.en).toContain(
      'among those that were not uploaded',
    );
  });
});

describe('rebalance-stages', () => {
  test('the longest stage is named, stage 0 too', () => {
    expect(adviceOf('rebalance-stages', { params: { longest: 0, stages: 4 } })!.text.en).toMatch(/^Stage 0 computes longest/);
  });

  test('the bubble of a balanced schedule is (p − 1) / (m + p − 1)', () => {
    expect(bubbleShare(4, 8)).toBeCloseTo(3 / 11);
    expect(adviceOf('rebalance-stages', { params: { stages: 4, longest: 1, microBatches: 8 } })!.text.en).toContain('idles about 27');
  });

  test('interleaving is named in the words of the library in use', () => {
    const text = (head: string) => adviceOf('rebalance-stages', { source: repository({ 'train.py': head }) })!.text.en;
    expect(text('from megatron.core import mpu\n')).toContain('--num-layers-per-virtual-pipeline-stage');
    expect(text('from torch.distributed.pipelining import PipelineStage\n')).toContain('ScheduleInterleaved1F1B');
    expect(text('import torch\n')).not.toContain('nterleav');
  });
});

describe('mark-the-gap', () => {
  const advice = (torchNpu: string | null) => adviceOf('mark-the-gap', { torchNpu })!;

  test('the capture option follows the release', () => {
    expect(advice('2.7.1.post2').code).toContain('mstx=True');
    expect(advice('2.7.1.post2').code).not.toContain('msprof_tx');
    expect(advice('2.1.0.post8').code).toContain('    msprof_tx=True');
    expect(advice(null).text.en).toContain('(torch_npu 7.2.0 or newer)');
  });

  test('a release without ranges gets the stack capture only', () => {
    expect(advice('2.1.0').code).toBeNull();
    expect(advice('2.1.0').text.en).toContain('`with_stack=True`');
    expect(advice('2.1.0').text.en).not.toContain('mstx');
  });
});
