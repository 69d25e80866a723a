import { createRequire } from 'node:module';
import { parse, registerDynamicLanguage, type SgNode } from '@ast-grep/napi';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MAX_FILE_BYTES, parsePython } from '../../src/source/python-parser.ts';
import { descend, type PyNode, spanOf, textOf } from '../../src/source/syntax-tree.ts';

const kinds = (text: string) => {
  const { module } = parsePython('a.py', text);
  return [...descend(module!.root)].map((node) => node.kind);
};

describe('parsePython', () => {
  test('offsets count the units JavaScript slices by, also after emoji and Chinese', () => {
    const { module } = parsePython('a.py', '# 训练 😀\nx = f("数据")\n');
    const call = [...descend(module!.root)].find((node) => node.kind === 'call')!;
    expect(textOf(module!, call)).toBe('f("数据")');
    expect(spanOf(module!, call)).toEqual({ startLine: 2, endLine: 2, startColumn: 4, endColumn: 11 });
  });

  test('children lie inside their parent and in order, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 80 }), (noise) => {
        const { module } = parsePython('a.py', `def f(a):\n    return g(a, b=1)\n${noise}\n`);
        if (module === null) return;
        for (const node of descend(module.root)) {
          let at = node.start;
          for (const child of node.children) {
            expect(child.start).toBeGreaterThanOrEqual(at);
            expect(child.end).toBeLessThanOrEqual(node.end);
            at = child.end;
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  test('a syntax error is reported by line and the rest stays searchable', () => {
    const { module } = parsePython('a.py', 'import torch\nx = [1, 2\n\ny = f(1)\n');
    expect(module!.brokenLines.length).toBeGreaterThan(0);
    expect(parsePython('a.py', 'import torch\nx = f(1)\n').module!.brokenLines).toEqual([]);
  });

  test('Python 2 statements count as errors, because such a file cannot be checked after an edit', () => {
    expect(parsePython('a.py', 'print "epoch"\n').module!.brokenLines).toEqual([1]);
  });

  test('a missing body counts as an error', () => {
    expect(parsePython('a.py', 'if x:\n').module!.brokenLines).toEqual([1]);
  });

  test('a file of more than 1 MB is refused and says why', () => {
    const { module, failure } = parsePython('big.py', `x = "${'a'.repeat(MAX_FILE_BYTES)}"\n`);
    expect(module).toBeNull();
    expect(failure).toMatchObject({ path: 'big.py', why: 'too large' });
  });

  test('the cap counts bytes, not characters', () => {
    expect(parsePython('zh.py', `# ${'训'.repeat(400_000)}\n`).failure!.why).toBe('too large');
  });

  test('a binary file is refused', () => {
    expect(parsePython('a.py', 'x = 1\n\0').failure!.why).toBe('not text');
  });

  test('a file nested thousands deep is refused, not walked', () => {
    expect(parsePython('deep.py', `${'f('.repeat(20_000)}${')'.repeat(20_000)}`).failure!.why).toBe('too complex');
  });

  test('an empty file, a BOM and CRLF line ends parse', () => {
    expect(parsePython('a.py', '').module!.brokenLines).toEqual([]);
    expect(kinds('\ufeffimport torch\r\nf(1)\r\n')).toContain('call');
    expect(parsePython('a.py', '\ufeffimport torch\r\nf(1)\r\n').module!.brokenLines).toEqual([]);
  });

  test('today’s grammar parses: match, walrus, type parameters, nested f-strings, exception groups', () => {
    const text = `match x:
    case [1, *rest] if (n := len(rest)) > 1:
        pass
class A[T](B): ...
type Row = list[int]
s = f'{a["b"]!r:>{width}}'
try:
    pass
except* ValueError as e:
    pass
async def f(a, /, b, *, c):
    async with g() as h:
        return [i async for i in h]
`;
    expect(parsePython('a.py', text).module!.brokenLines).toEqual([]);
  });
});

test('the copy is the tree of the parser, node by node', () => {
  registerDynamicLanguage({ python: createRequire(import.meta.url)('@ast-grep/lang-python') });
  const texts = [
    'x = a.b . c(1, *d, k=2, **e,)[0:1, ::2] ** -1 if not (yield) else lambda: (1,)\n',
    'def f(a, /, b: int = 1, *, c=None, **kw) -> "int":\n  pass; x = 1;\n  return a, b,\n',
    'x: int\nx: "t" = {**a, "b": [1, 2,], **c}\ny += 1, 2\nfor a, in b: print(a not in c, a is not d, a <= b < c)\n',
    'f"a{x!r:>{w}}b{{}}" "c" \'d\' rb"""e\nf"""  # é 中\nnaïve = 1_0.5e3j + 0x1F\n',
    '# -*- coding: latin-1 -*-\r\nif a:\r\n\tb( # x\r\n\t  c,\r\n\t)\r\nelif d: pass\r\nelse:\r\n\te\r\n',
    'x = a \\\n  .b(  \\\n )\nasync def g():\n  async with a as b, c: await d\n  [i async for i in j if k]\n',
    '@a.b(c)\nclass D(E, metaclass=F):\n  """g"""\n  match h:\n    case [1, *i] if j: k = (l := 2)\n',
    'print "python 2"\nx = (1,\n',
    'a = [\n# only a comment\n]\nb = ()\nc = {}\nd(\n)\n\fe = a[()]\ntype T = int\n',
    '',
  ];
  for (const text of texts) {
    const pairs: [SgNode, PyNode][] = [[parse('python', text).root(), parsePython('a.py', text).module!.root]];
    for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
      const [theirs, ours] = pair;
      const { start, end } = theirs.range();
      const children = theirs.children();
      expect([ours.kind, ours.named, ours.start, ours.end, ours.children.length], text).toEqual([
        String(theirs.kind()),
        theirs.isNamed(),
        start.index,
        end.index,
        children.length,
      ]);
      for (const [i, child] of children.entries()) pairs.push([child, ours.children[i]!]);
    }
  }
});
