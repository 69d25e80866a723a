import { describe, expect, test } from 'vitest';
import { repository } from './repository.ts';
import { adviceOf } from './situations.ts';

describe('avoid-aicpu', () => {
  const text = (params: Record<string, string | null>) => adviceOf('avoid-aicpu', { params })!.text.en;

  test('the data type decides, whether or not the CANN release is known', () => {
    for (const cann of [null, '8.0.0', '7.0.RC1', 'unheard-of']) {
      expect(text({ ops: 'Mul', dtypes: 'INT16', cann })).toContain('use `torch.int32`');
      expect(text({ ops: 'Mul', dtypes: 'DOUBLE', cann })).toContain('use `torch.float32`');
      expect(text({ ops: 'Mul', dtypes: 'COMPLEX128', cann })).toContain('complex');
    }
    expect(text({ ops: 'Mul', dtypes: 'INT16', cann: null })).toContain('does not record the CANN release');
    expect(text({ ops: 'Mul', dtypes: 'INT16', cann: '8.0.0' })).not.toContain('does not record');
  });

  test('indexing gets rewrites that keep NaN and a fixed size, never a product with the mask', () => {
    const advice = adviceOf('avoid-aicpu', { params: { ops: 'IndexPutV2, NonZero', dtypes: 'DT_BF16', cann: null } })!;
    expect(advice.code).toContain('x.masked_fill(mask, 0)');
    expect(advice.code).not.toMatch(/\*\s*~?mask|~mask/);
    expect(advice.preconditions[0]!.en).toContain('these forms return a new one');
    expect(adviceOf('avoid-aicpu', { params: { ops: 'Mul', dtypes: 'INT16', cann: null } })!.code).toBeNull();
  });

  test('calls with a size that depends on the data are named, the ones on the path of the profile first', () => {
    const source = repository({
      'train.py': 'import torch\nidx = torch.nonzero(mask)\n',
      'other.py': 'import torch\nu = torch.unique(x)\n',
    });
    const locations = [{ file: 'train.py', line: 2, symbol: 'main', provenBy: 'call-stack' as const }];
    const advice = adviceOf('avoid-aicpu', { source, params: { ops: 'NonZero', dtypes: 'BOOL', cann: null } }, { locations })!;
    expect(advice.locations.map((l) => `${l.file}:${l.line}`)).toEqual(['train.py:2', 'other.py:2']);
    expect(advice.edits).toEqual([]);
  });
});

describe('drop-casts', () => {
  test('pairs: the casts that mixed precision needs stay; a narrowing pair changes the numbers', () => {
    const advice = adviceOf('drop-casts', { params: { kind: 'pair', narrows: true } })!;
    expect(advice.text.en).toContain('those stay');
    expect(advice.preconditions.some((p) => p.en.includes('rounds'))).toBe(true);
    expect(adviceOf('drop-casts', { params: { kind: 'pair', narrows: false } })!.preconditions).toEqual([]);
  });

  test('weights: one region, closed before the optimizer step; no bf16 on the first series', () => {
    const advice = adviceOf('drop-casts', { params: { kind: 'weight', passes: 4 } })!;
    expect(advice.code!.split('\n').at(-1)).toMatch(/^optimizer\.step\(\)/);
    expect(advice.code).toContain('torch.autocast("npu", enabled=False)');
    const old = adviceOf('drop-casts', { soc: 'gen-1', params: { kind: 'weight', passes: 4 } })!;
    expect(old.code).toBeNull();
    expect(old.text.en).not.toContain('bfloat16');
  });
});

describe('align-shapes', () => {
  test('names the length and the next one that fits', () => {
    expect(adviceOf('align-shapes', { params: { tail: 1531, padded: 1536 } })!.text.en).toContain('axis of 1,531 to 1,536');
    expect(adviceOf('align-shapes')!.text.en).toContain('512 bytes');
  });
});

describe('fuse-formula', () => {
  test('compiling is advised where it exists', () => {
    expect(adviceOf('fuse-formula', { torchNpu: '2.7.1.post2' })!.text.en).toContain('`torch.compile`');
    expect(adviceOf('fuse-formula', { torchNpu: '2.1.0.post8' })!.text.en).not.toContain('torch.compile');
    expect(adviceOf('fuse-formula', { soc: 'gen-1' })!.text.en).not.toContain('torch.compile');
    expect(adviceOf('fuse-formula', { torchNpu: '2.7.1.post8' })!.text.en).toContain('TORCH_NPU_LAZY_FUSION');
    expect(adviceOf('fuse-formula', { soc: '950', torchNpu: '2.7.1.post8' })!.text.en).not.toContain('TORCH_NPU_LAZY_FUSION');
  });
});

describe('tune-kernel and check-frequency', () => {
  test('each reason has its own advice', () => {
    const text = (params: Record<string, string | number>) => adviceOf('tune-kernel', { params })!.text.en;
    expect(text({ reason: 'cores', cores: 40 })).toContain('waves of 40');
    expect(text({ reason: 'pipes' })).toContain('newer CANN release');
    expect(text({ reason: 'cache' })).toContain('cache');
  });

  test('one card is swapped, all cards are a matter of the host; code is never blamed', () => {
    expect(adviceOf('check-frequency', { params: { rank: 5, all: false } })!.text.en).toContain('card of rank 5');
    expect(adviceOf('check-frequency', { params: { rank: 5, all: false } })!.text.en).toContain('another card');
    expect(adviceOf('check-frequency', { params: { rank: null, all: true } })!.text.en).toContain('All cards are affected');
    expect(adviceOf('check-frequency')!.text.en).toContain('No change of code');
  });
});
