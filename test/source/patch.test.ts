import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { applyLineEdit, type LineEdit } from '../../src/source/line-edit.ts';
import { patchesOf } from '../../src/source/patch.ts';

let root = '';
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'npu-advisor-patch-'));
  execFileSync('git', ['init', '-q', root]);
  execFileSync('git', ['-C', root, 'config', 'core.autocrlf', 'false']);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

type Files = Readonly<Record<string, string>>;

const replaced = (file: string, text: string, startLine: number, endLine: number, after: string): LineEdit => ({
  file,
  startLine,
  endLine,
  before: text
    .split('\n')
    .slice(startLine - 1, endLine)
    .join('\n'),
  after,
});

/** What real git makes of the patch. */
function gitApplies(files: Files, patch: string): Files {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  execFileSync('git', ['-C', root, 'apply', '--whitespace=nowarn', '-'], { input: patch, stdio: ['pipe', 'ignore', 'pipe'] });
  return Object.fromEntries(Object.keys(files).map((file) => [file, readFileSync(join(root, file), 'utf8')]));
}

function written(files: Files, edits: readonly LineEdit[]): string {
  return patchesOf(edits, (file) => files[file] ?? null)
    .map(({ text }) => text)
    .join('');
}

function byHand(files: Files, edits: readonly LineEdit[]): Files {
  const now: Record<string, string> = { ...files };
  for (const edit of edits.toSorted((a, b) => b.startLine - a.startLine)) now[edit.file] = applyLineEdit(now[edit.file]!, edit)!;
  return now;
}

const TEN = Array.from({ length: 10 }, (_, i) => `line ${i + 1}`).join('\n');

describe('git apply takes it', () => {
  test.each<[string, Files, (files: Files) => LineEdit[]]>([
    ['a line', { 'a.py': `${TEN}\n` }, (f) => [replaced('a.py', f['a.py']!, 5, 5, 'five')]],
    ['lines added and taken away', { 'a.py': `${TEN}\n` }, (f) => [replaced('a.py', f['a.py']!, 4, 6, 'a\nb\nc\nd')]],
    [
      'the first and the last line',
      { 'a.py': `${TEN}\n` },
      (f) => [replaced('a.py', f['a.py']!, 1, 1, 'x\ny'), replaced('a.py', f['a.py']!, 10, 10, 'z')],
    ],
    ['a deletion, with the line before it', { 'a.py': `${TEN}\n` }, (f) => [replaced('a.py', f['a.py']!, 3, 4, 'line 3')]],
    ['no line break at the end', { 'a.py': TEN }, (f) => [replaced('a.py', f['a.py']!, 10, 10, 'ten\neleven')]],
    ['a line behind the open end', { 'a.py': TEN }, (f) => [replaced('a.py', f['a.py']!, 10, 10, 'line 10\neleven')]],
    ['the open end goes', { 'a.py': TEN }, (f) => [replaced('a.py', f['a.py']!, 9, 10, 'line 9')]],
    ['the open end as context', { 'a.py': TEN }, (f) => [replaced('a.py', f['a.py']!, 8, 8, 'eight')]],
    ['CRLF', { 'a.py': `${TEN}\n`.replaceAll('\n', '\r\n') }, (f) => [replaced('a.py', f['a.py']!, 5, 5, 'five\r')]],
    ['a byte order mark', { 'a.py': `\ufeff${TEN}\n` }, (f) => [replaced('a.py', f['a.py']!, 2, 2, 'two')]],
    ['one line', { 'a.py': 'x' }, (f) => [replaced('a.py', f['a.py']!, 1, 1, 'y')]],
    ['names with blanks', { 'my models/a b.py': `${TEN}\n` }, (f) => [replaced('my models/a b.py', f['my models/a b.py']!, 5, 5, 'five')]],
    ['names in Chinese', { '训练/主 "1".py': `${TEN}\n` }, (f) => [replaced('训练/主 "1".py', f['训练/主 "1".py']!, 5, 5, '五')]],
    [
      'several files',
      { 'a.py': `${TEN}\n`, 'b/c.sh': `${TEN}\n` },
      (f) => [replaced('b/c.sh', f['b/c.sh']!, 2, 2, 'two'), replaced('a.py', f['a.py']!, 9, 9, 'nine')],
    ],
  ])('%s', (_, files, edits) => {
    const patch = written(files, edits(files));
    expect(gitApplies(files, patch)).toEqual(byHand(files, edits(files)));
    expect(gitApplies(files, `# what to check\n#   - first\n\n${patch}`)).toEqual(byHand(files, edits(files)));
  });
});

test('the first of two edits of the same lines counts, and one that does not fit is left out', () => {
  const files = { 'a.py': `${TEN}\n` };
  const [first, second] = [replaced('a.py', files['a.py'], 4, 5, 'x'), replaced('a.py', files['a.py'], 5, 6, 'y')];
  expect(written(files, [first, second])).toBe(written(files, [first]));
  expect(written(files, [{ ...first, before: 'other' }])).toBe('');
  expect(written(files, [{ ...first, file: 'gone.py' }])).toBe('');
});

test('any edits of any text: git makes the same of the patch as the edits do', () => {
  const line = fc.constantFrom('', ' ', 'a', 'b', '\tx = 1', '-', '+', '@@ -1 +1 @@', '\\', 'diff --git a/x b/x', '注释', 'a\r', '--- a/x');
  fc.assert(
    fc.property(
      fc.array(line, { minLength: 1, maxLength: 14 }),
      fc.boolean(),
      fc.array(fc.tuple(fc.nat(13), fc.nat(2), fc.array(line, { minLength: 1, maxLength: 3 })), { minLength: 1, maxLength: 3 }),
      (lines, isClosed, wanted) => {
        const text = lines.join('\n') + (isClosed ? '\n' : '');
        const count = text.endsWith('\n') ? text.split('\n').length - 1 : text.split('\n').length;
        const edits: LineEdit[] = [];
        for (const [at, more, now] of wanted) {
          const startLine = (at % Math.max(1, count)) + 1;
          const endLine = Math.min(count, startLine + more);
          if (text === '' || edits.some((other) => other.startLine <= endLine && startLine <= other.endLine)) continue;
          edits.push(replaced('a.py', text, startLine, endLine, now.join('\n')));
        }
        const files = { 'a.py': text };
        const patch = written(files, edits);
        const expected = byHand(files, edits);
        if (patch === '') expect(expected).toEqual(files);
        else expect(gitApplies(files, patch)).toEqual(expected);
      },
    ),
    { numRuns: 60 },
  );
});
