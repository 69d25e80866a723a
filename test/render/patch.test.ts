import { describe, expect, test } from 'vitest';
import { renderCheck } from '../../src/render/check.ts';
import { renderMarkdown } from '../../src/render/markdown.ts';
import { applyLineEdit, type LineEdit } from '../../src/source/line-edit.ts';
import { patchesOf } from '../../src/source/patch.ts';
import { caseA, finding, report, reportComment } from './reports.ts';

const TEXT = `${Array.from({ length: 9 }, (_, i) => `line ${i + 1}`).join('\n')}\n`;
const edit = (file: string, after = 'five'): LineEdit => ({ file, startLine: 5, endLine: 5, before: 'line 5', after });

function patchFor(edits: readonly LineEdit[], texts: Readonly<Record<string, string>> = {}): string {
  return patchesOf(edits, (file) => texts[file] ?? TEXT)
    .map(({ text }) => text)
    .join('');
}

/** The patch as a reader copies it out of a page. */
function blocks(text: string): string[] {
  return [...text.matchAll(/^(`{3,})diff\n([\s\S]*?)^\1$/gm)].map((match) => match[2]!);
}

const textOf = (patch: string): string =>
  renderCheck({ comment: reportComment(report({ patch })), annotatable: () => false }).text.replaceAll('\u00a0', ' ');

describe('the patch in the check', () => {
  test('is the one of the report, to the character', () => {
    const patch = patchFor([edit('train.py', 'x = "```" # `'), edit('models/a b.py')]);
    expect(applyLineEdit(TEXT, edit('train.py'))).not.toBeNull();
    expect(blocks(textOf(patch))).toContain(patch);
    expect(blocks(renderMarkdown(report({ patch })))).toContain(patch);
  });

  test('is bounded: files that do not fit are named and left to the command line', () => {
    const edits = Array.from({ length: 60 }, (_, i) => edit(`f${i}.py`, `x = "${'y'.repeat(900)}"`));
    const text = textOf(patchFor(edits));
    const [shown] = blocks(text).filter((block) => block.startsWith('diff --git'));
    expect(shown!.length).toBeLessThan(16_001);
    expect(shown).toMatch(/^\+\+\+ b\/f0\.py$/m);
    expect(text).toContain('`npu-advise patch` writes them');
    expect(text.length).toBeLessThan(60_000);
  });

  test('leaves out what a page would change: carriage returns and invisible characters', () => {
    const texts = { 'crlf.py': TEXT.replaceAll('\n', '\r\n'), 'plain.py': TEXT };
    const edits = [{ ...edit('crlf.py', 'five\r'), before: 'line 5\r' }, edit('plain.py'), edit('odd.py', 'x = "\u200b"')];
    const text = textOf(patchFor(edits, texts));
    expect(blocks(text)).toContain(patchFor([edit('plain.py')]));
    expect(text).toContain('Not shown here: `crlf.py`, `odd.py`');
  });

  test('is not there without edits', () => {
    expect(renderCheck({ comment: caseA('en'), annotatable: () => false }).text).not.toContain('git apply');
  });
});

test('an edit outside the diff is a code block with the address of its lines', () => {
  const edits = [{ ...edit('train.py'), kind: 'comment-only' as const }];
  const change = { remedy: 'x', title: 'Change', text: 'Change.', code: null, edits, preconditions: [], references: [] };
  const comment = reportComment(report({ findings: [finding({ recommendations: [change] })] }));
  const { text } = renderCheck({ comment, annotatable: () => false });
  expect(text).toMatch(/\[`train\.py:5`\]\(https:\/\/[^)]*\/blob\/[0-9a-f]{40}\/train\.py#L5\)/);
  expect(blocks(text)).toContain('-line 5\n+five\n');
});
