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
  test('torch 2.7 and newer need none, 2.6 and older do, unknown is told both', () => {
    expect(adviceOf(ID, { torch: '2.7.1' })!.code).not.toContain('pin_memory_device');
    expect(adviceOf(ID, { torch: '2.1.0' })!.code).toContain('    pin_memory_device="npu",');
    expect(adviceOf(ID, { torch: null })!.text.en).toContain('With torch 2.6 or older also set');
  });

  test('transfer_to_npu has the same effect as the device', () => {
    expect(edited('DataLoader(ds)', { torch: '2.1.0' }, 'from torch_npu.contrib import transfer_to_npu\n')).toBe(
      'DataLoader(ds, pin_memory=True)',
    );
    expect(edited('DataLoader(ds)', { torch: '2.1.0' })).toBe('DataLoader(ds, pin_memory=True, pin_memory_device="npu")');
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
