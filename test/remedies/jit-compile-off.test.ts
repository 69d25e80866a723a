import { describe, expect, test } from 'vitest';
import { applied, repository } from './repository.ts';
import { adviceOf } from './situations.ts';

const ID = 'jit-compile-off';
const ON = 'import torch_npu\ntorch_npu.npu.set_compile_mode(jit_compile=True)\n';
const OFF = 'import torch_npu\ntorch_npu.npu.set_compile_mode(jit_compile=False)\n';

const kinds = (text: string, over: Parameters<typeof adviceOf>[1] = {}, finding = {}) =>
  adviceOf(ID, { source: repository({ 'train.py': text }), ...over }, finding)!.edits.map((edit) => edit.kind);

describe('one click', () => {
  test.each([
    ['torch_npu.npu', ON, OFF],
    [
      'torch.npu',
      'import torch\ntorch.npu.set_compile_mode(jit_compile=True)\n',
      'import torch\ntorch.npu.set_compile_mode(jit_compile=False)\n',
    ],
    [
      'an alias, several lines, CRLF',
      'from torch_npu.npu import set_compile_mode as mode\r\nmode(\r\n    jit_compile=True,  # 在线编译\r\n)\r\n',
      'from torch_npu.npu import set_compile_mode as mode\r\nmode(\r\n    jit_compile=False,  # 在线编译\r\n)\r\n',
    ],
  ])('%s', (_, before, after) => {
    const source = repository({ 'train.py': before });
    const [edit] = adviceOf(ID, { source })!.edits;
    expect(edit!.kind).toBe('suggestion');
    expect(applied(source, edit!)).toBe(after);
    expect(adviceOf(ID, { source: repository({ 'train.py': after }) })!.edits).toEqual([]);
  });

  test('on A2 and A3; on the first generation only with dynamic shapes', () => {
    for (const soc of ['A2', 'A3'] as const) expect(kinds(ON, { soc }), String(soc)).toEqual(['suggestion']);
    expect(kinds(ON, { soc: 'gen-1', params: { shapes: 'dynamic' } })).toEqual(['suggestion']);
  });
});

describe('comment only', () => {
  test('950 ignores the setting, and unknown hardware may be one', () => {
    for (const soc of ['950', null] as const)
      for (const params of [{}, { shapes: 'dynamic' }]) expect(kinds(ON, { soc, params }), String(soc)).toEqual(['comment-only']);
  });

  test('first generation with fixed or unknown shapes', () => {
    expect(kinds(ON, { soc: 'gen-1' })).toEqual(['comment-only']);
    expect(kinds(ON, { soc: 'gen-1', params: { shapes: 'static' } })).toEqual(['comment-only']);
    expect(kinds(ON, { soc: null, params: { shapes: 'static' } })).toEqual(['comment-only']);
  });

  test('one branch of a choice', () => {
    const choice = `import torch_npu\nif old:\n    torch_npu.npu.set_compile_mode(jit_compile=True)\nelse:\n    torch_npu.npu.set_compile_mode(jit_compile=False)\n`;
    expect(kinds(choice)).toEqual(['comment-only']);
  });

  test('another file sets it too, or an option of that name decides', () => {
    const two = repository({ 'train.py': ON, 'setup_npu.py': OFF });
    expect(adviceOf(ID, { source: two })!.edits.map((edit) => edit.kind)).toEqual(['comment-only']);
    expect(kinds('import torch_npu\nif args.jit_compile:\n    torch_npu.npu.set_compile_mode(jit_compile=True)\n')).toEqual([
      'comment-only',
    ]);
    expect(kinds('import torch_npu\nif args.device == "npu":\n    torch_npu.npu.set_compile_mode(jit_compile=True)\n')).toEqual([
      'suggestion',
    ]);
  });

  test('outside the diff', () => {
    expect(adviceOf(ID, { source: repository({ 'train.py': ON }, []) })!.edits.map((edit) => edit.kind)).toEqual(['comment-only']);
  });

  test('low confidence, or a name that may be rebound', () => {
    expect(kinds(ON, {}, { confidence: 'low' })).toEqual(['comment-only']);
    expect(kinds(`${ON}torch_npu = other()\n`)).toEqual(['comment-only']);
  });
});

describe('no edit', () => {
  test.each([
    ['an expression', 'import torch_npu\ntorch_npu.npu.set_compile_mode(jit_compile=args.jit)\n'],
    ['a positional True', 'import torch_npu\ntorch_npu.npu.set_compile_mode(True)\n'],
    ['a string', 'import torch_npu\ntorch_npu.npu.set_compile_mode(jit_compile="True")\n'],
    ['another function of that name', 'from .modes import set_compile_mode\nset_compile_mode(jit_compile=True)\n'],
    ['a test', ''],
  ])('%s', (_, text) => {
    expect(adviceOf(ID, { source: repository({ 'train.py': text, 'tests/a.py': ON }) })!.edits).toEqual([]);
  });
});

describe('direction', () => {
  const text = (over: Parameters<typeof adviceOf>[1]) => adviceOf(ID, over)!.text.en;

  test('A2 and A3 are off by default: look for who turns it on', () => {
    expect(text({ soc: 'A2' })).toContain('`jit_compile=False` is the default on this hardware: look for code');
    expect(adviceOf(ID, { soc: 'A3' })!.code).not.toContain('set_compile_mode');
  });

  test('the first generation sets both at the top of the entry script', () => {
    expect(text({ soc: 'gen-1' })).toContain('compiles online by default');
    expect(adviceOf(ID, { soc: 'gen-1' })!.code).toContain('set_compile_mode(jit_compile=False)');
    expect(adviceOf(ID, { soc: 'gen-1' })!.code).toContain('allow_internal_format = False');
  });

  test('950 accepts only False, and has no such cache', () => {
    expect(text({ soc: '950' })).toContain('accepts only `jit_compile=False`');
    expect(text({ soc: '950' })).not.toContain('ACL_OP_COMPILER_CACHE_DIR');
    expect(adviceOf(ID, { soc: '950' })!.code).toBeNull();
  });

  test('the source is named when it sets the mode', () => {
    expect(text({ source: repository({ 'train.py': OFF }) })).toContain('sets `jit_compile=False` already');
    expect(text({ source: repository({ 'train.py': ON }) })).toContain('It is set in `train.py`.');
    expect(text({ source: repository({ 'train.py': 'import torch_npu\ntorch_npu.npu.set_compile_mode(jit_compile=x)\n' }) })).toContain(
      'comes from an expression',
    );
  });

  test('in a loop the call also synchronises', () => {
    const looped = 'import torch_npu\nfor e in epochs:\n    torch_npu.npu.set_compile_mode(jit_compile=True)\n';
    expect(text({ source: repository({ 'train.py': looped }) })).toContain('move it out of the loop');
  });

  test('LLaMA-Factory has its own switch', () => {
    const advice = adviceOf(ID, { source: repository({ 'run.sh': '# NPU_JIT_COMPILE=0\nexport NPU_JIT_COMPILE=1\n' }) })!;
    expect(advice.text.en).toContain('LLaMA-Factory sets this mode itself');
    expect(advice.locations).toEqual([{ file: 'run.sh', line: 2, symbol: null }]);
  });
});
