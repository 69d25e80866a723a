import fc from 'fast-check';
import { expect, test } from 'vitest';
import { carryLine, diffCommits, hunkHeader, hunksOf, placeOf, placesOf } from '../../lab/loopback-github/diff.ts';
import { type Changes, commitsBetween, createObjects, mergeBase, writeCommit } from '../../lab/loopback-github/git.ts';

const author = { login: 'a', name: 'a', email: 'a@example.org' };
const date = '2026-01-02T03:04:05Z';
const patch = (before: string, after: string): string[] => hunksOf(before, after).flatMap((hunk) => [hunkHeader(hunk), ...hunk.lines]);

/** Lines after a patch, read from the patch alone. */
function applied(before: string, after: string): string[] {
  const lines = before.split('\n');
  let shift = 0;
  for (const hunk of hunksOf(before, after)) {
    const start = (hunk.oldLines === 0 ? hunk.oldStart : hunk.oldStart - 1) + shift;
    const fresh = hunk.lines.filter((line) => /^[ +]/.test(line)).map((line) => line.slice(1));
    lines.splice(start, hunk.oldLines, ...fresh);
    shift += hunk.newLines - hunk.oldLines;
  }
  return lines;
}

test('hunks are written as git writes them', () => {
  expect(patch('', 'a\n')).toEqual(['@@ -0,0 +1 @@', '+a']);
  expect(patch('a\n', '')).toEqual(['@@ -1 +0,0 @@', '-a']);
  expect(patch('a\nb', 'a\nc')).toEqual([
    '@@ -1,2 +1,2 @@',
    ' a',
    '-b',
    '\\ No newline at end of file',
    '+c',
    '\\ No newline at end of file',
  ]);
  const long = `def main():\n${'  x\n'.repeat(20)}`;
  expect(patch(long, `${long}  y\n`)[0]).toBe('@@ -19,3 +19,4 @@ def main():');
});

const line = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const file = fc.array(line, { maxLength: 40 }).map((lines) => lines.map((text) => `${text}\n`).join(''));

test('hunks turn the old file into the new one', () => {
  fc.assert(
    fc.property(file, file, (before, after) => {
      expect(applied(before, after)).toEqual(after.split('\n'));
    }),
  );
});

test('places agree with the files', () => {
  fc.assert(
    fc.property(file, file, (before, after) => {
      const entry = {
        path: 'f',
        previousPath: null,
        status: 'modified',
        sha: '',
        additions: 0,
        deletions: 0,
        patch: '',
        hunks: hunksOf(before, after),
      } as const;
      for (const place of placesOf(entry)) {
        if (place.oldLine !== null) expect(before.split('\n')[place.oldLine - 1]).toBe(place.text);
        if (place.newLine !== null) expect(after.split('\n')[place.newLine - 1]).toBe(place.text);
        expect(placeOf(entry, place.newLine === null ? 'LEFT' : 'RIGHT', place.newLine ?? place.oldLine ?? 0)).toMatchObject({
          position: place.position,
        });
      }
    }),
  );
});

test('a line carried to the new file is the same line', () => {
  fc.assert(
    fc.property(file, file, (before, after) => {
      const old = before.split('\n').slice(0, -1);
      for (const [index, text] of old.entries()) {
        const carried = carryLine(before, after, index + 1);
        if (carried !== null) expect(after.split('\n')[carried - 1]).toBe(text);
      }
    }),
  );
});

test('object ids are git’s', () => {
  const objects = createObjects();
  const first = writeCommit(objects, { parents: [], changes: { 'a.txt': 'hello\n', 'b/c.txt': 'x' }, message: 'first', author, date });
  expect(first.files.get('a.txt')).toBe('ce013625030ba8dba906f756967f9e9ca394464a');
  expect(objects.trees.get(first.tree)?.map((entry) => [entry.mode, entry.path])).toEqual([
    ['100644', 'a.txt'],
    ['040000', 'b'],
  ]);
});

test('differences: added, removed, renamed, binary, and only what the branch did', () => {
  const objects = createObjects();
  const commit = (parents: string[], changes: Changes) => writeCommit(objects, { parents, changes, message: 'm', author, date }).sha;
  const root = commit([], { keep: 'k\n', old: 'long enough\n', gone: 'g\n' });
  const base = commit([root], { keep: 'changed on main\n' });
  const head = commit([root], { old: null, renamed: 'long enough\n', gone: null, fresh: 'f\n', picture: Buffer.from([0, 1]) });
  expect(mergeBase(objects, base, head)).toBe(root);
  expect(commitsBetween(objects, base, head).map((entry) => entry.sha)).toEqual([head]);
  expect(diffCommits(objects, root, head).map((entry) => [entry.path, entry.status, entry.previousPath, entry.patch])).toEqual([
    ['fresh', 'added', null, '@@ -0,0 +1 @@\n+f'],
    ['gone', 'removed', null, '@@ -1 +0,0 @@\n-g'],
    ['picture', 'added', null, null],
    ['renamed', 'renamed', 'old', null],
  ]);
});
