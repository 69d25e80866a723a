import { describe, expect, test } from 'vitest';
import { applied, repository } from './repository.ts';
import { adviceOf } from './situations.ts';

const ID = 'batch-transfer';
const IMPORT = 'from torch.utils.data import DataLoader\n';

function edited(call: string, over: Parameters<typeof adviceOf>[1] = {}, extra = ''): string | null {
  const source = repository({ 'train.py': `${IMPORT}${extra}loader = ${call}\n` });
  const [edit] = adviceOf(ID, { source, ...over })!.edits;
  if (edit === undefined) return null;
  expect(edit.kind).toBe('comment-only');
  return applied(source, edit).split('loader = ')[1]!.trimEnd();
}

describe('the device of pinned memory', () => {
  test('torch 2.7 and newer need none, 2.1 to 2.6 do, unknown is told both', () => {
    expect(adviceOf(ID, { torch: '2.7.1' })!.code).not.toContain('pin_memory_device');
    expect(adviceOf(ID, { torch: '2.1.0' })!.code).toContain('    pin_memory_device="npu",');
    expect(adviceOf(ID, { torch: null })!.text.en).toContain('With torch 2.1 to 2.6 also set');
  });

  test('transfer_to_npu has the same effect as the device', () => {
    expect(edited('DataLoader(ds)', { torch: '2.1.0' }, 'from torch_npu.contrib import transfer_to_npu\n')).toBe(
      'DataLoader(ds, pin_memory=True)',
    );
    expect(edited('DataLoader(ds)', { torch: '2.1.0' }, 'import torch_npu\n')).toBe(
      'DataLoader(ds, pin_memory=True, pin_memory_device="npu")',
    );
  });

  const LOOP = 'for x, y in loader:\n    x = x.to(device)\n    model(x).backward()\n';
  const DEVICE = ', pin_memory_device="npu"';
  test.each([
    // [torch, a loader that pins nothing, a loader with pin_memory=True, its copy]
    ['1.11.0', '', null, 'suggestion'],
    ['2.0.1', '', null, 'suggestion'],
    ['2.1.0', DEVICE, DEVICE, 'comment-only'],
    ['2.6.0', DEVICE, DEVICE, 'comment-only'],
    ['2.7.1', '', null, 'suggestion'],
  ])('torch %s', (torch, added, missing, copy) => {
    const of = (options: string, own = 'import torch_npu\n') =>
      adviceOf(ID, {
        torch,
        source: repository({ 'train.py': `${own}${IMPORT}loader = DataLoader(ds, num_workers=4${options})\n${LOOP}` }),
      })!.edits.map(({ after, kind }) => [after.trim(), kind]);
    const changed = (options: string) => `loader = DataLoader(ds, num_workers=4, pin_memory=True${options})`;
    const open = 'x = x.to(device, non_blocking=True)';
    expect(of('')).toEqual([
      [changed(added), 'suggestion'],
      [open, 'comment-only'],
    ]);
    expect(of(', pin_memory=True')).toEqual([...(missing === null ? [] : [[changed(missing), 'suggestion']]), [open, copy]]);
    expect(of(`, pin_memory=True${DEVICE}`)).toEqual([[open, 'suggestion']]);
    // Nothing here is about an NPU: the keyword is not written.
    expect(of('', 'import sys\n')[0]).toEqual([changed(''), added === '' ? 'suggestion' : 'comment-only']);
  });

  test('a version that is not known leaves the copy to a person', () => {
    const source = repository({ 'train.py': `${IMPORT}loader = DataLoader(ds, num_workers=4, pin_memory=True)\n${LOOP}` });
    expect(adviceOf(ID, { source, torch: null })!.edits.map(({ kind }) => kind)).toEqual(['comment-only']);
  });
});

describe('edit', () => {
  test('a loader that says nothing', () => {
    expect(edited('DataLoader(ds, num_workers=4)')).toBe('DataLoader(ds, num_workers=4, pin_memory=True)');
  });

  test('none where it is given, by keyword or position, or open', () => {
    expect(edited('DataLoader(ds, pin_memory=True)')).toBeNull();
    expect(edited('DataLoader(ds, pin_memory=args.pin)')).toBeNull();
    expect(edited('DataLoader(ds, 1, None, None, None, 0, None, False)')).toBeNull();
    expect(edited('DataLoader(ds, **options)')).toBeNull();
  });

  test('a pinned loader leaves only the copy to change', () => {
    const source = repository({ 'train.py': `${IMPORT}loader = DataLoader(ds, pin_memory=True)\n` });
    expect(adviceOf(ID, { source })!.text.en).toMatch(/^The loader pins its batches already; pass `non_blocking=True`/);
  });
});
