import { describe, expect, test } from 'vitest';
import { findCalls } from '../../src/source/calls.ts';
import { applyLineEdit } from '../../src/source/line-edit.ts';
import { parsePython } from '../../src/source/python-parser.ts';
import { replaceLiteral } from '../../src/source/replace-literal.ts';

const IMPORT = 'import torch_npu\n';

function outcomeFor(text: string) {
  const { module } = parsePython('train.py', text);
  const [call] = findCalls(module!, ['torch_npu.npu.set_compile_mode']);
  return replaceLiteral(module!, call!, 'jit_compile', 'True', 'False');
}

describe('replaceLiteral, before → after', () => {
  test.each([
    ['one line', 'torch_npu.npu.set_compile_mode(jit_compile=True)\n', 'torch_npu.npu.set_compile_mode(jit_compile=False)\n'],
    [
      'blanks and a comment',
      'torch_npu.npu.set_compile_mode( jit_compile = True )  # 编译\n',
      'torch_npu.npu.set_compile_mode( jit_compile = False )  # 编译\n',
    ],
    [
      'several lines',
      'torch_npu.npu.set_compile_mode(\n    jit_compile=True,\n)\n',
      'torch_npu.npu.set_compile_mode(\n    jit_compile=False,\n)\n',
    ],
    [
      'tabs and CRLF',
      'if x:\r\n\ttorch_npu.npu.set_compile_mode(jit_compile=True)\r\n',
      'if x:\r\n\ttorch_npu.npu.set_compile_mode(jit_compile=False)\r\n',
    ],
    [
      'a True beside it',
      'f(True, torch_npu.npu.set_compile_mode(jit_compile=True), True)\n',
      'f(True, torch_npu.npu.set_compile_mode(jit_compile=False), True)\n',
    ],
  ])('%s', (_, before, after) => {
    const { edit } = outcomeFor(IMPORT + before);
    expect(edit!.startLine).toBe(edit!.endLine);
    expect(applyLineEdit(IMPORT + before, edit!)).toBe(IMPORT + after);
    expect(applyLineEdit(IMPORT + after, edit!)).toBeNull();
    expect(outcomeFor(IMPORT + after).refusal).toBe('the value is another literal');
  });
});

describe('replaceLiteral refuses', () => {
  test.each([
    ['an expression', 'torch_npu.npu.set_compile_mode(jit_compile=args.jit)\n', 'the value is not a literal'],
    ['a condition', 'torch_npu.npu.set_compile_mode(jit_compile=not False)\n', 'the value is not a literal'],
    ['a string', 'torch_npu.npu.set_compile_mode(jit_compile="True")\n', 'the value is not a literal'],
    ['another literal', 'torch_npu.npu.set_compile_mode(jit_compile=False)\n', 'the value is another literal'],
    ['a positional argument', 'torch_npu.npu.set_compile_mode(True)\n', 'the keyword is not there'],
    ['**kwargs', 'torch_npu.npu.set_compile_mode(jit_compile=True, **k)\n', 'the call takes *args or **kwargs'],
    ['an f-string', 'f"{torch_npu.npu.set_compile_mode(jit_compile=True)}"\n', 'inside an f-string'],
    ['a syntax error elsewhere', 'torch_npu.npu.set_compile_mode(jit_compile=True)\nif\n', 'syntax error in the file'],
  ])('%s', (_, text, refusal) => {
    expect(outcomeFor(IMPORT + text)).toEqual({ edit: null, refusal });
  });
});
