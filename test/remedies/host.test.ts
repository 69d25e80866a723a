/* Advice for what holds up the host. */
import { describe, expect, test } from 'vitest';
import { applied, repository } from './repository.ts';
import { adviceOf } from './situations.ts';

describe('remove-sync', () => {
  const ID = 'remove-sync';
  const about = (kind: string, extra: Parameters<typeof adviceOf>[1] = {}) =>
    adviceOf(ID, { ...extra, params: { kind, perStep: 36, beforeGraph: false, ...extra.params } })!;

  test('reading a value: sum on the card, read when logging', () => {
    const { text, code } = about('item');
    expect(text.en).toMatch(/^Keep the value on the card and read it only every so many steps/);
    expect(text.zh).toContain('记录日志时再调用 `.item()`');
    expect(code).toContain('loss.detach()');
    expect(code).toMatch(/if step % log_every == 0/);
  });

  test('a size the card decides: keep the shape', () => {
    const { text, code, preconditions } = about('shape');
    expect(text.en).toContain('`torch.where` and `masked_fill` keep the shape');
    expect(code).toContain('torch.where(mask, y, x)');
    expect(preconditions.map((p) => p.en).join(' ')).toContain('changed in place');
  });

  test.each(['stream', 'device', 'event', 'drain'])('%s: an event replaces the wait, and what it guarded stays guarded', (kind) => {
    const { code, preconditions } = about(kind);
    expect(code).toContain('wait_event');
    expect(preconditions.map((p) => p.en).join(' ')).toMatch(/an event replaces the wait, nothing is left out/);
  });

  test('before a graph the wait guards inputs in use', () => {
    expect(about('stream', { params: { beforeGraph: true } }).text.en).toContain('use two sets of inputs and an event between them');
    expect(about('stream').text.en).not.toContain('two sets of inputs');
  });

  test('explicit waits in a loop are named, one outside of it is not', () => {
    const source = repository({
      'train.py':
        'import torch\nimport torch_npu\nfor batch in loader:\n    step(batch)\n    torch.npu.synchronize()\ntorch.npu.synchronize()\n',
    });
    expect(about('device', { source }).locations).toEqual([{ file: 'train.py', line: 5, symbol: null }]);
    expect(about('item', { source }).locations).toEqual([]);
    expect(about('device', { source }).edits).toEqual([]);
  });

  test('where the edit deletes the wait, the text says so and promises no event', () => {
    const source = repository({
      'train.py': 'import torch\nimport torch_npu\nfor batch in loader:\n    model(batch).backward()\n    torch.npu.synchronize()\n',
    });
    const { text, code, edits, preconditions } = about('device', { source });
    expect(edits.map(({ kind, after }) => [kind, after])).toEqual([['suggestion', '    model(batch).backward()']]);
    expect([text.en.startsWith('Delete this wait'), text.zh.startsWith('删除该等待'), code]).toEqual([true, true, null]);
    const held = preconditions.map(({ en, zh }) => `${en} ${zh}`).join(' ');
    expect(held).not.toMatch(/nothing is left out|不要直接省略/);
    expect(held).toMatch(/Nothing out of sight relies on the wait.*仓库之外没有代码依赖该等待/);
  });

  test('the switch that finds waits exists from 5.0.rc3 and for A2 and A3; a known line needs no switch', () => {
    expect(about('item', { soc: 'A2' }).text.en).toContain('`torch_npu.npu.set_sync_debug_mode("warn")`');
    expect(about('item', { soc: 'gen-1' }).text.en).not.toContain('set_sync_debug_mode');
    const known = adviceOf(ID, { params: { kind: 'item', perStep: 3 } }, { locations: [PLACE] })!;
    expect(known.text.en).not.toContain('set_sync_debug_mode');
  });
});

const PLACE = { file: '/workspace/repo/train.py', line: 47, symbol: null, inDiff: false, provenBy: 'profile' as const };

describe('launch-settings', () => {
  const ID = 'launch-settings';

  test('the queue, binding, graphs, a larger batch, in this order', () => {
    const { text, code } = adviceOf(ID, { soc: 'A2', params: { taskQueue: '1', affinity: null } })!;
    const order = ['`TASK_QUEUE_ENABLE=2`', '`CPU_AFFINITY_CONF=2`', '`torch.compile`', 'micro batch'].map((part) => text.en.indexOf(part));
    expect(order[0]).toBeGreaterThan(-1);
    expect(order).toEqual([...order].sort((a, b) => a - b));
    expect(code).toContain('export TASK_QUEUE_ENABLE=2\nexport CPU_AFFINITY_CONF=2');
  });

  test('what is set already is not said again', () => {
    const { text, code } = adviceOf(ID, { params: { taskQueue: '2', affinity: '1' } })!;
    expect(text.en).not.toContain('TASK_QUEUE_ENABLE=2');
    expect(text.en).not.toContain('CPU_AFFINITY_CONF');
    expect(code).toBeNull();
  });

  test('releases that read neither variable are told neither', () => {
    const { text } = adviceOf(ID, { torch: '2.1.0', torchNpu: '2.1.0', params: {} })!;
    expect(text.en).not.toMatch(/TASK_QUEUE_ENABLE=2|CPU_AFFINITY_CONF|torch\.compile/);
    expect(text.en).toContain('micro batch');
  });

  test('graphs are not for the first generation, whose queue needs prebuilt operators', () => {
    const { text } = adviceOf(ID, { soc: 'gen-1', params: {} })!;
    expect(text.en).not.toContain('torch.compile');
    expect(text.en).toContain('`jit_compile=False`');
  });

  test('the only line that sets the queue lower is shown with 2, as a comment', () => {
    const source = repository({ 'run.sh': 'export TASK_QUEUE_ENABLE=1\ntorchrun train.py\n' });
    const [edit] = adviceOf(ID, { source, params: {} })!.edits;
    expect(edit!.kind).toBe('comment-only');
    expect(applied(source, edit!)).toBe('export TASK_QUEUE_ENABLE=2\ntorchrun train.py\n');
  });
});

describe('gc-tuning', () => {
  const ID = 'gc-tuning';

  test('a guess is made sure of first, where the release can record collections', () => {
    const guessed = { params: { guessed: true, ranks: 8 } };
    expect(adviceOf(ID, guessed)!.text.en).toMatch(/^First make sure: capture again with `gc_detect_threshold=1.0`/);
    expect(adviceOf(ID, { params: { guessed: false, ranks: 8 } })!.text.en).not.toContain('make sure');
    expect(adviceOf(ID, { ...guessed, torch: '2.1.0', torchNpu: '2.1.0' })!.text.en).not.toContain('gc_detect_threshold');
  });

  test('several ranks collect in the same step', () => {
    expect(adviceOf(ID, { params: { guessed: false, ranks: 8 } })!.text.en).toContain('on all ranks in the same step');
    expect(adviceOf(ID, { params: { guessed: false, ranks: 1 } })!.text.en).not.toContain('all ranks');
  });

  test('reference cycles are a precondition', () => {
    expect(
      adviceOf(ID, { params: {} })!
        .preconditions.map((p) => p.en)
        .join(' '),
    ).toContain('Reference cycles');
  });
});

describe('keep-cached-memory', () => {
  const ID = 'keep-cached-memory';
  const source = repository({
    'train.py':
      'import torch\nfor batch in loader:\n    step(batch)\n    torch.npu.empty_cache()\n    try:\n        validate()\n    except RuntimeError:\n        torch.npu.empty_cache()\ntorch.npu.empty_cache()\n',
  });

  test('calls in a loop are named; the answer to a failed allocation and the one after training are not', () => {
    const { text, locations, edits } = adviceOf(ID, { source, params: { releases: 1 } })!;
    expect(locations).toEqual([{ file: 'train.py', line: 4, symbol: null }]);
    expect(text.en).toMatch(/^Delete `torch.npu.empty_cache\(\)` from the loop/);
    expect(edits).toEqual([]);
  });

  test('without the source it is a question', () => {
    expect(adviceOf(ID, { params: { releases: 1 } })!.text.en).toMatch(/out of the loop, if it is there/);
  });
});

describe('prepare-batch-in-workers', () => {
  const ID = 'prepare-batch-in-workers';

  test('a loader without workers gets some, one with workers more to do', () => {
    expect(adviceOf(ID, { params: { iterator: 'single' } })!.text.en).toContain('`num_workers=4`');
    expect(adviceOf(ID, { params: { iterator: 'multi' } })!.text.en).toContain('Workers then do it while the card computes');
  });

  test('the training loader is named', () => {
    const source = repository({ 'train.py': 'from torch.utils.data import DataLoader\nloader = DataLoader(ds, num_workers=2)\n' });
    expect(adviceOf(ID, { source, params: { iterator: 'multi' } })!.locations).toEqual([{ file: 'train.py', line: 2, symbol: null }]);
  });
});
