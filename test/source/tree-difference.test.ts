import { describe, expect, test } from 'vitest';
import { findCalls } from '../../src/source/calls.ts';
import { parsePython } from '../../src/source/python-parser.ts';
import { differsOnlyBy } from '../../src/source/tree-difference.ts';

const HEAD = 'from m import f\n';

function differs(before: string, after: string): boolean {
  const old = parsePython('a.py', HEAD + before).module!;
  const now = parsePython('a.py', HEAD + after).module!;
  const [call] = findCalls(old, ['m.f']);
  return differsOnlyBy(old, now, { kind: 'add-keywords', list: call!.list!, keywords: [{ keyword: 'k', value: 'False' }] });
}

describe('differsOnlyBy accepts', () => {
  test.each([
    ['the keyword', 'x = f(a)\n', 'x = f(a, k=False)\n'],
    ['the keyword and a trailing comma', 'x = f(\n  a\n)\n', 'x = f(\n  a,\n  k=False,\n)\n'],
    ['the keyword in an empty list', 'f()\n', 'f(k=False)\n'],
    ['the same comments in another column', 'f(a)  # c\n', 'f(a, k=False) # c\n'],
  ])('%s', (_, before, after) => {
    expect(differs(before, after)).toBe(true);
  });
});

describe('differsOnlyBy refuses', () => {
  test.each([
    ['no change', 'x = f(a)\n', 'x = f(a)\n'],
    ['another value', 'x = f(a)\n', 'x = f(a, k=True)\n'],
    ['another keyword', 'x = f(a)\n', 'x = f(a, kk=False)\n'],
    ['two keywords', 'x = f(a)\n', 'x = f(a, k=False, j=1)\n'],
    ['a keyword in another call', 'x = f(a); g(b)\n', 'x = f(a); g(b, k=False)\n'],
    ['a keyword in a nested call', 'x = f(g(a))\n', 'x = f(g(a, k=False))\n'],
    ['a lost comment', 'x = f(a)  # keep\n', 'x = f(a, k=False)\n'],
    ['a keyword that ended up in a comment', 'x = f(a)  # keep\n', 'x = f(a)  # keep, k=False\n'],
    ['a changed string', 'x = f("a\\n")\n', 'x = f("b\\n", k=False)\n'],
    ['a changed number elsewhere', 'x = f(a); y = 1\n', 'x = f(a, k=False); y = 2\n'],
    ['another operator', 'x = f(a) + 1\n', 'x = f(a, k=False) - 1\n'],
    ['a moved statement', 'if x:\n    f(a)\n    y()\n', 'if x:\n    f(a, k=False)\ny()\n'],
    ['a lost argument', 'x = f(a, b)\n', 'x = f(a, k=False)\n'],
    ['a comma that makes a tuple', 'x = f((a))\n', 'x = f((a,), k=False)\n'],
    ['a changed f-string', 'x = f(f"{a}b")\n', 'x = f(f"{a}c", k=False)\n'],
  ])('%s', (_, before, after) => {
    expect(differs(before, after)).toBe(false);
  });
});
