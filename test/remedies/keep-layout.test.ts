import { describe, expect, test } from 'vitest';
import { applied, repository } from './repository.ts';
import { adviceOf } from './situations.ts';

const ID = 'keep-layout';
const FORMATS = { types: 'TransData', removableMs: 0 };

describe('format conversions', () => {
  test('the advice follows the hardware’s default', () => {
    const text = (soc: 'gen-1' | 'A2' | '950' | null) => adviceOf(ID, { soc, params: FORMATS })!.text.en;
    expect(text('gen-1')).toContain('`torch_npu.npu.config.allow_internal_format = False` at the top');
    expect(text('gen-1')).toContain('Convolution networks can lose speed');
    for (const soc of ['A2', '950'] as const) expect(text(soc)).toContain('off by default on this hardware');
    expect(text(null)).toContain('On the first Atlas training series');
  });

  test('the lines that ask for private formats are named; switching off is shown as a comment', () => {
    const train =
      'import torch_npu\r\ntorch_npu.npu.config.allow_internal_format = True  # 私有格式\r\nw = torch_npu.npu_format_cast(w, 29)\r\nv = torch_npu.npu_format_cast(v, 2)\r\n';
    const source = repository({ 'train.py': train });
    const advice = adviceOf(ID, { source, params: FORMATS })!;
    expect(advice.locations.map(({ line }) => line)).toEqual([2, 3]);
    expect(advice.edits.map((edit) => edit.kind)).toEqual(['comment-only']);
    expect(applied(source, advice.edits[0]!)).toBe(train.replace('= True', '= False'));
    expect(advice.text.en).toContain('asks for private formats at the lines named here');
  });

  test('a comment, a comparison and False are no such line', () => {
    const source = repository({
      'train.py':
        '# torch.npu.config.allow_internal_format = True\nif torch.npu.config.allow_internal_format == True: pass\ntorch.npu.config.allow_internal_format = False\n',
    });
    expect(adviceOf(ID, { source, params: FORMATS })!.locations).toEqual([]);
  });

  test('without format conversions nothing is said about formats', () => {
    expect(adviceOf(ID, { params: { types: 'Transpose', removableMs: 1 } })!.text.en).not.toContain('rivate formats');
  });
});

describe('transposes', () => {
  test('a view never replaces a transpose', () => {
    for (const params of [FORMATS, {}, { types: 'Transpose', removableMs: 3 }]) {
      expect(adviceOf(ID, { params })!.text.en).toContain('A `transpose` is never replaced by `view`');
      expect(adviceOf(ID, { params })!.code ?? '').not.toMatch(/^[^#]*contiguous\(\)\.view/m);
    }
  });

  test('round trips are named only when the rule found them removable', () => {
    expect(adviceOf(ID, { params: { types: 'Transpose', removableMs: 3 } })!.text.en).toContain('undo each other');
    expect(adviceOf(ID, { params: { types: 'Transpose', removableMs: 0 } })!.text.en).not.toContain('undo each other');
  });

  test('the copy before a collective stays', () => {
    expect(adviceOf(ID)!.preconditions[0]!.zh).toContain('HCCL 要求内存连续');
  });

  test('operator types of a profile stay literals', () => {
    expect(adviceOf(ID, { params: { types: 'Trans`pose\n<b>' } })!.text.en).toContain('`Transˋpose <b>`');
  });
});
