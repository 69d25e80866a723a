import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hunksOf, isInsideOneHunk, rightLinesOf } from '../../src/source/hunks.ts';

const PATCH = `@@ -10,6 +10,7 @@ def main():
     a = 1
     b = 2
-    model = build()
+    model = build(cfg)
+    model = DDP(model)
     c = 3
     d = 4
     e = 5
@@ -40,4 +41,3 @@ def eval():
     x = 1
-    y = 2
     z = 3
     w = 4
\\ No newline at end of file`;

describe('hunksOf', () => {
  test('right-hand lines are the added and the context lines', () => {
    expect(hunksOf(PATCH)).toEqual([
      { startLine: 10, endLine: 16 },
      { startLine: 41, endLine: 43 },
    ]);
    expect([...rightLinesOf(PATCH)]).toEqual([10, 11, 12, 13, 14, 15, 16, 41, 42, 43]);
  });

  test('a new file', () => {
    expect(hunksOf('@@ -0,0 +1,3 @@\n+a\n+b\n+c')).toEqual([{ startLine: 1, endLine: 3 }]);
  });

  test('a new file of one line has no count in its header', () => {
    expect(hunksOf('@@ -0,0 +1 @@\n+a\n\\ No newline at end of file')).toEqual([{ startLine: 1, endLine: 1 }]);
  });

  test('a removed file has no right-hand lines', () => {
    expect(hunksOf('@@ -1,2 +0,0 @@\n-a\n-b')).toEqual([]);
  });

  test('only removed lines leave the context', () => {
    expect(hunksOf('@@ -5,4 +5,2 @@\n a\n-b\n-c\n d')).toEqual([{ startLine: 5, endLine: 6 }]);
  });

  test('a line that looks like a header is content when it starts with a sign', () => {
    expect(hunksOf('@@ -1,2 +1,3 @@\n a\n+@@ -9,9 +9,9 @@\n b')).toEqual([{ startLine: 1, endLine: 3 }]);
  });

  test('file headers before a hunk do not count', () => {
    expect(hunksOf('--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-a\n+b')).toEqual([{ startLine: 1, endLine: 1 }]);
  });

  test('an empty context line without its blank keeps the numbers right', () => {
    expect(hunksOf('@@ -1,3 +1,4 @@\n a\n\n+b\n c\n')).toEqual([{ startLine: 1, endLine: 4 }]);
  });

  test('CRLF content', () => {
    expect(hunksOf('@@ -1,2 +1,3 @@\n a\r\n+b\r\n c\r')).toEqual([{ startLine: 1, endLine: 3 }]);
  });

  test('a cut patch counts as far as it goes', () => {
    expect(hunksOf('@@ -1,50 +1,60 @@\n a\n+b')).toEqual([{ startLine: 1, endLine: 2 }]);
  });

  test('lines beyond the count of the header do not count', () => {
    expect(hunksOf('@@ -1 +1 @@\n+a\n+b\n+c')).toEqual([{ startLine: 1, endLine: 1 }]);
  });

  test('garbage has no hunks', () => {
    expect(hunksOf('')).toEqual([]);
    expect(hunksOf('Binary files differ')).toEqual([]);
    expect(hunksOf('@@@ -1,2 -1,2 +1,3 @@@\n++a')).toEqual([]);
    expect(hunksOf('@@ -1,1 +99999999999999999999,3 @@\n+a')).toEqual([]);
    fc.assert(fc.property(fc.string(), (noise) => Array.isArray(hunksOf(noise))));
  });
});

test('a range across two hunks, reversed or at line 0 is not inside one', () => {
  const hunks = hunksOf(PATCH);
  expect(isInsideOneHunk(hunks, 10, 16)).toBe(true);
  expect(isInsideOneHunk(hunks, 14, 14)).toBe(true);
  expect(isInsideOneHunk(hunks, 16, 17)).toBe(false);
  expect(isInsideOneHunk(hunks, 16, 41)).toBe(false);
  expect(isInsideOneHunk(hunks, 12, 11)).toBe(false);
  expect(isInsideOneHunk(hunks, 0, 10)).toBe(false);
});
