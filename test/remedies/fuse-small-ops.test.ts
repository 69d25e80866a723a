import { describe, expect, test } from 'vitest';
import { applied, repository } from './repository.ts';
import { adviceOf } from './situations.ts';

const ID = 'fuse-small-ops';
const OLD = { torch: '2.1.0', torchNpu: '2.1.0' };
const text = (params: Parameters<typeof adviceOf>[1] = {}) => adviceOf(ID, params)!.text.en;

describe('order', () => {
  test('synchronisations, then the queue, then fused calls, then graphs', () => {
    const said = text({ params: { where: 'forward' } });
    const order = ['`.item()`', '`TASK_QUEUE_ENABLE=2`', 'scaled_dot_product_attention', '`torch.compile`'].map((part) =>
      said.indexOf(part),
    );
    expect(order).toEqual([...order].sort((a, b) => a - b));
    expect(order[0]).toBeGreaterThan(-1);
  });

  test('launch blocking comes before everything', () => {
    expect(text({ params: { where: 'forward', launchBlocking: true } })).toMatch(/^`ASCEND_LAUNCH_BLOCKING=1` is set/);
    const source = repository({ 'run.sh': 'export ASCEND_LAUNCH_BLOCKING=1\n', 'debug.sh': 'export ASCEND_LAUNCH_BLOCKING=1\n' });
    expect(text({ source })).toMatch(/^`ASCEND_LAUNCH_BLOCKING=1` is set/);
    expect(adviceOf(ID, { source })!.locations).toEqual([{ file: 'run.sh', line: 1, symbol: null }]);
  });
});

describe('the dispatch queue', () => {
  test('level 2 needs 6.0.rc3, is not repeated when set, and needs prebuilt operators on the first generation', () => {
    expect(text(OLD)).not.toContain('TASK_QUEUE_ENABLE=2');
    expect(text({ params: { taskQueue: '2' } })).not.toContain('TASK_QUEUE_ENABLE=2');
    expect(text({ torchNpu: null })).toContain('`TASK_QUEUE_ENABLE=2` in the launch script (torch_npu 6.0.rc3 or newer)');
    expect(text({ soc: 'gen-1' })).toContain('that is with `jit_compile=False`');
  });

  test('a line that sets it lower is shown with 2, as a comment', () => {
    const source = repository({ 'run.sh': '#!/bin/bash\nexport TASK_QUEUE_ENABLE=0  # off\ntorchrun train.py\n' });
    const [edit] = adviceOf(ID, { source })!.edits;
    expect(edit!.kind).toBe('comment-only');
    expect(applied(source, edit!)).toBe('#!/bin/bash\nexport TASK_QUEUE_ENABLE=2  # off\ntorchrun train.py\n');
  });

  test('a line that reads it, or sets it to 2, is left alone', () => {
    const source = repository({
      'train.py': 'x = os.environ.get("TASK_QUEUE_ENABLE", "0")\n',
      'ci.yml': 'env:\n  TASK_QUEUE_ENABLE: "2"\n',
    });
    expect([adviceOf(ID, { source })!.edits, adviceOf(ID, { source })!.locations]).toEqual([[], []]);
  });
});

describe('graphs and operators compiled online', () => {
  const script = { 'run.sh': 'export TASK_QUEUE_ENABLE=0\ntorchrun train.py\n' };

  test.each([
    ['torch.compile', 'import torch\nmodel = torch.compile(model)\n'],
    ['graphs of torch_npu', 'import torch_npu\ng = torch_npu.npu.NPUGraph()\n'],
    ['operators compiled online', 'import torch_npu\ntorch_npu.npu.set_compile_mode(jit_compile=True)\n'],
  ])('%s: level 2 is told with its condition and never written out', (_, train) => {
    for (const id of [ID, 'launch-settings']) {
      const advice = adviceOf(id, { source: repository({ ...script, 'train.py': train }), params: { where: 'forward' } })!;
      expect(advice.text.en).toContain('such runs keep `TASK_QUEUE_ENABLE=1`');
      expect(advice.code ?? '').not.toContain('TASK_QUEUE_ENABLE=2');
      expect(advice.edits).toEqual([]);
    }
  });

  test('without them both remedies name graph capture as a condition', () => {
    for (const id of [ID, 'launch-settings']) {
      const advice = adviceOf(id, { source: repository({ ...script, 'train.py': 'import torch_npu\n' }) })!;
      expect(advice.code).toContain('TASK_QUEUE_ENABLE=2');
      expect(advice.preconditions.map(({ en }) => en).join(' ')).toContain('captures no graphs');
    }
  });
});

describe('optimizer', () => {
  const where = { where: 'optimizer' };

  test('A2 and A3 take the foreach path by themselves; the first generation has a fused class; others are told neither', () => {
    expect(text({ soc: 'A2', params: where })).toContain('takes the foreach path by default');
    expect(text({ soc: 'gen-1', params: where })).toContain('`torch_npu.optim.NpuFusedAdamW` for fp32 or fp16');
    for (const soc of [null, '950'] as const) expect(text({ soc, params: where })).toMatch(/^Check that the optimizer/);
  });

  test('foreach=False in the source is named', () => {
    const source = repository({ 'train.py': 'import torch\nopt = torch.optim.AdamW(p, foreach=False)\n' });
    const advice = adviceOf(ID, { source, params: where })!;
    expect(advice.text.en).toMatch(/^`foreach=False` at the line named here/);
    expect(advice.locations).toEqual([{ file: 'train.py', line: 2, symbol: null }]);
  });

  test('the fused class comes with its zero_grad rule', () => {
    expect(
      adviceOf(ID, { soc: 'gen-1', params: where })!
        .preconditions.map(({ en }) => en)
        .join(' '),
    ).toContain('without `set_to_none=True`');
  });
});

describe('fused calls and graphs', () => {
  test('only what the hardware lists', () => {
    expect(text({ soc: 'A2' })).toContain('npu_swiglu');
    expect(text({ soc: 'A3' })).not.toContain('npu_swiglu');
    expect(text({ soc: 'gen-1' })).not.toMatch(/scaled_dot_product_attention|torch\.compile/);
    expect(text({ soc: '950' })).not.toContain('torch_npu.npu_');
    expect(text({ soc: null })).toContain('lists its hardware on its own page');
  });

  test('graphs from 7.3.0, lazy fusion from 26.1.0', () => {
    expect(text({ torchNpu: '2.1.0.post8' })).not.toContain('torch.compile');
    expect(text({ torchNpu: null })).toContain('whole graphs (torch_npu 7.3.0 or newer)');
    expect(text({ torchNpu: '2.7.1.post2' })).not.toContain('TORCH_NPU_LAZY_FUSION');
    expect(text({ torchNpu: '2.7.1.post8' })).toContain('TORCH_NPU_LAZY_FUSION');
    expect(text({ torchNpu: '2.7.1.post8', soc: '950' })).not.toContain('TORCH_NPU_LAZY_FUSION');
  });
});
