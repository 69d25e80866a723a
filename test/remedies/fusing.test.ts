import { describe, expect, test } from 'vitest';
import { repository } from './repository.ts';
import { adviceOf } from './situations.ts';

const OLD = { torch: '1.11.0', torchNpu: '1.11.0' };

describe('use-affinity-api', () => {
  const ID = 'use-affinity-api';
  const advice = (pattern: string, over: Parameters<typeof adviceOf>[1] = {}, more: object = {}) =>
    adviceOf(ID, { ...over, params: { pattern, ...more } })!;

  test('each formula names its operator on A2', () => {
    const named: Record<string, string> = {
      attention: 'scaled_dot_product_attention',
      'expert-loop': 'npu_grouped_matmul',
      gelu: 'torch.nn.functional.gelu',
      'layer-norm': 'layer_norm',
      'masked-softmax': 'npu_scaled_masked_softmax',
      'rms-norm': 'npu_rms_norm',
      rotary: 'npu_rotary_mul',
      softmax: 'torch.nn.functional.softmax',
      swiglu: 'npu_swiglu',
      'transposed-batch': 'npu_transpose_batchmatmul',
      'transposed-product': 'torch.matmul',
    };
    for (const [pattern, name] of Object.entries(named)) expect(advice(pattern).text.en, pattern).toContain(name);
  });

  test('hardware whose page does not list the operator is not told to call it', () => {
    for (const soc of ['gen-1', 'A3', '950'] as const) expect(advice('swiglu', { soc }).text.en).not.toContain('npu_swiglu');
    expect(advice('rms-norm', { soc: '950' }).text.en).not.toContain('npu_rms_norm');
    expect(advice('attention', { soc: '950' }).text.en).not.toContain('scaled_dot_product_attention');
    expect(advice('attention', { soc: '950' }).text.en).toContain('npu_fusion_attention');
    expect(advice('attention', { soc: 'A3' }).text.en).not.toContain('npu_fusion_attention');
    expect(advice('expert-loop', { soc: 'gen-1' }).text.en).toMatch(/^No fused call for it is listed/);
    expect(advice('swiglu', { soc: 'A3', torchNpu: '2.7.1.post8' }).text.en).toContain('TORCH_NPU_LAZY_FUSION=True');
  });

  test('an unknown release is told from when on', () => {
    expect(advice('swiglu', { torchNpu: null }).text.en).toContain('(torch_npu 6.0.rc1 or newer)');
    expect(advice('swiglu', { torchNpu: null }).text.zh).toContain('（torch_npu 6.0.rc1 及以上）以一个张量');
  });

  test('what has to hold: pairs of types, masks with the opposite meaning, no backward, merged projections', () => {
    const holds = (pattern: string, more: object = {}, soc: 'A2' | 'gen-1' = 'A2') =>
      advice(pattern, { soc }, more)
        .preconditions.map((p) => p.en)
        .join(' ');
    expect(holds('rms-norm')).toMatch(/type of the input, or fp32.*Rounding differs/);
    expect(holds('rms-norm', {}, 'gen-1')).toMatch(/fp16 or fp32/);
    expect(holds('attention')).toMatch(/opposite in the two calls/);
    expect(holds('expert-loop', { trains: true })).toMatch(/registers no backward/);
    expect(holds('expert-loop', { trains: false })).not.toMatch(/registers no backward/);
    expect(holds('swiglu', { split: false })).toMatch(/Checkpoints/);
    expect(advice('swiglu', {}, { split: true }).text.en).not.toMatch(/Merge the two projections/);
    expect(advice('transposed-batch').text.en).toMatch(/inference only/);
    expect(advice('gelu', {}, { form: 'erf' }).code).toBe('y = torch.nn.functional.gelu(x)');
  });

  test('nothing deprecated, nothing undocumented, no edit', () => {
    for (const pattern of ['attention', 'swiglu', 'gelu', 'expert-loop', 'transposed-batch', 'masked-softmax']) {
      const said = JSON.stringify(advice(pattern));
      expect(said).not.toMatch(
        /confusion_transpose|npu_geglu|npu_add_layer_norm|npu_silu|npu_moe_token_permute|fused_attention_score|fast_gelu/,
      );
      expect(advice(pattern).edits).toEqual([]);
    }
    expect(adviceOf(ID, { params: {} })).toBeNull();
  });
});

describe('use-fused-optimizer', () => {
  const ID = 'use-fused-optimizer';
  const update = (optimizer: string, kind: string, over: Parameters<typeof adviceOf>[1] = {}) =>
    adviceOf(ID, { ...over, params: { what: 'update', optimizer, kind, tensors: 160 } });

  test('AdamW: fused=True where it is registered, with the number of launches, as a trial', () => {
    const advice = update('AdamW', 'foreach')!;
    expect(advice.text.en).toMatch(/^Try `torch\.optim\.AdamW` with `fused=True`.*It launches one kernel per parameter, 160 here/);
    expect(advice.text.en).toContain('Measure it');
    expect(advice.code).toContain('fused=True');
    expect(update('AdamW', 'foreach', { soc: 'gen-1' })!.text.en).not.toContain('fused=True');
    expect(update('AdamW', 'foreach', OLD)).toBeNull();
  });

  test('never beside a gradient scaler', () => {
    for (const name of ['torch.amp.GradScaler("npu")', 'torch.npu.amp.GradScaler()', 'torch.cuda.amp.GradScaler()']) {
      const source = repository({ 'train.py': `import torch\nscaler = ${name}\nopt = torch.optim.AdamW(p, lr)\n` });
      const advice = update('AdamW', 'foreach', { source })!;
      expect(advice.text.en, name).toMatch(/Leave it off/);
      expect(advice.code).toBeNull();
    }
  });

  test('Adam has no fused kernel of its own', () => {
    expect(update('Adam', 'foreach')!.text.en).toContain('Without weight decay');
    expect(update('Adam', 'foreach')!.code).toContain('weight_decay=0');
  });

  test('a loop: foreach first, or a class of torch_npu, which saves launches and no passes', () => {
    const source = repository({
      'train.py': 'import torch\nopt = torch.optim.SGD(p, 0.1, foreach=False)\nother = torch.optim.SGD(q, 0.1)\n',
    });
    const advice = update('SGD', 'loop', { source })!;
    expect(advice.text.en).toMatch(/does not pass `foreach=False`.*NpuFusedSGD.*as often/s);
    expect(advice.locations).toEqual([{ file: 'train.py', line: 2, symbol: null }]);
    expect(advice.preconditions.map((p) => p.en).join(' ')).toMatch(/`zero_grad\(\)` without `set_to_none=True`/);
    expect(update('Lamb', 'loop', { soc: 'gen-1' })).toBeNull();
  });

  test('long tensors are combined already: only the passes can go', () => {
    expect(update('NpuFusedAdamW', 'combined')).toBeNull();
  });

  test('fills: the default of torch 2, which the classes of torch_npu refuse', () => {
    const advice = adviceOf(ID, { params: { what: 'zero-grad' } })!;
    expect(advice.code).toBe('optimizer.zero_grad(set_to_none=True)');
    expect(advice.preconditions.map((p) => p.en).join(' ')).toMatch(/NpuFused raise an error/);
  });
});

test('fuse-chain counts the chains and offers compiling where it exists', () => {
  const advice = adviceOf('fuse-chain', { params: { chains: 48 } })!;
  expect(advice.text.en).toMatch(/^48 times per step/);
  expect(advice.text.en).toContain('torch.compile');
  expect(adviceOf('fuse-chain', { soc: 'gen-1' })!.text.en).not.toContain('torch.compile');
});
