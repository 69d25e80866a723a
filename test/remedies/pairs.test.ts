import { describe, expect, test } from 'vitest';
import { codeFacts } from '../../src/facts/code/index.ts';
import type { Edit } from '../../src/model/report.ts';
import { ALLOWED } from '../../src/remedies/allow-list.ts';
import { REMEDIES } from '../../src/remedies/index.ts';
import { applyLineEdit } from '../../src/source/line-edit.ts';
import { parsePython } from '../../src/source/python-parser.ts';
import { sourceTreeFrom } from '../../src/source/source-tree-from.ts';
import { descend, type PyModule, partsOf, textOf } from '../../src/source/syntax-tree.ts';
import { DDP_PAIRS } from './pairs/ddp.ts';
import { HOST_PAIRS } from './pairs/host.ts';
import { LOADER_PAIRS } from './pairs/loader.ts';
import { MIGRATION_PAIRS } from './pairs/migration.ts';
import type { Over, PairSet, Row } from './pairs/pair.ts';
import { TENSOR_PAIRS } from './pairs/tensors.ts';
import { repository } from './repository.ts';
import { adviceOf, contextOf, findingOf, PARAMS, TREES } from './situations.ts';

const SETS: readonly PairSet[] = [...LOADER_PAIRS, ...HOST_PAIRS, ...TENSOR_PAIRS, ...DDP_PAIRS, ...MIGRATION_PAIRS];

function editsFor(set: PairSet, text: string, over: Over): readonly Edit[] {
  const file = over.file ?? 'train.py';
  const files = { ...over.files, [file]: text };
  const source = repository(files, over.outsideDiff === true ? [] : Object.keys(files));
  const first = set.prelude.split('\n').length - 1;
  const locations = (over.lines ?? []).map((line) => ({ file, line: first + line, symbol: null, provenBy: 'call-stack' as const }));
  const context = {
    soc: over.soc === undefined ? ('A2' as const) : over.soc,
    torch: over.torch === undefined ? '2.7.1' : over.torch,
    params: over.params ?? {},
    source,
  };
  if (set.remedy === 'fix-for-npu')
    return codeFacts(source)
      .migration.occurrences.flatMap(
        ({ kind, name, replacement, site }) =>
          adviceOf(
            set.remedy,
            { ...context, params: { kind, name, replacement }, sites: [site] },
            { confidence: over.confidence ?? 'high' },
          )?.edits ?? [],
      )
      .filter((edit, i, all) => all.findIndex((other) => other.after === edit.after) === i);
  return adviceOf(set.remedy, context, { locations, confidence: over.confidence ?? 'high' })?.edits ?? [];
}

/** All edits in one text. Edits of one answer never overlap. */
function applyAll(text: string, edits: readonly Edit[]): string {
  let result = text;
  let below = Number.POSITIVE_INFINITY;
  for (const edit of edits.toSorted((a, b) => b.startLine - a.startLine)) {
    expect(edit.endLine).toBeLessThan(below);
    below = edit.startLine;
    const next = applyLineEdit(result, edit);
    if (next === null) throw new Error('the edit does not fit');
    result = next;
  }
  return result;
}

/** Suggestions are accepted one by one: each alone leaves a program whose names still have their values. */
function checkAlone(text: string, edit: Edit): void {
  const alone = applyLineEdit(text, edit);
  if (alone === null) throw new Error('the edit does not fit');
  if (!edit.file.endsWith('.py')) return;
  const [before, after] = [text, alone].map((code) => parsePython('train.py', code).module!) as [PyModule, PyModule];
  expect(after.brokenLines).toEqual([]);
  const [was, is] = [bindingCounts(before), bindingCounts(after)];
  for (const [name, count] of was) expect(is.get(name) ?? 0, name).toBe(count);
}

/** How often each name is given a value. No edit takes a value away without giving it back elsewhere. */
function bindingCounts(module: PyModule): Map<string, number> {
  const counts = new Map<string, number>();
  for (const node of descend(module.root)) {
    if (node.kind !== 'assignment') continue;
    const [target] = partsOf(node);
    const name = target?.kind === 'identifier' ? textOf(module, target) : null;
    if (name !== null) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

function check(set: PairSet, [, before, after, kind, rowOver]: Row): void {
  const over = { ...set.over, ...rowOver };
  const text = set.prelude + before;
  const edits = editsFor(set, text, over);
  if (after === null) {
    expect(edits).toEqual([]);
    return;
  }
  const result = applyAll(text, edits);
  expect(result).toBe(set.prelude + after);
  for (const edit of edits) if (edit.kind === 'suggestion') checkAlone(text, edit);
  const kinds = edits.toSorted((a, b) => a.startLine - b.startLine).map((edit) => edit.kind);
  expect(kinds).toEqual(typeof kind === 'string' ? kinds.map(() => kind) : kind);
  for (const edit of edits) expect(edit.file).toBe(over.file ?? 'train.py');
  if (!(over.file ?? 'train.py').endsWith('.py')) return;
  expect(parsePython('train.py', result).module!.brokenLines).toEqual([]);
  // A second look finds nothing more to change in what it has changed.
  const again = editsFor(set, result, over);
  if (over.lines === undefined) expect(again).toEqual([]);
}

describe.each(SETS.map((set) => [set.pattern, set] as const))('%s', (_, set) => {
  test.each(set.rows.map((row) => [row[0], row] as const))('%s', (__, row) => check(set, row));
});

test('the corpus has at least 150 pairs, and a third of them leave the code alone', () => {
  const rows = SETS.flatMap(({ rows: of }) => of);
  expect(rows.length).toBeGreaterThanOrEqual(150);
  expect(rows.filter(([, , after]) => after === null).length).toBeGreaterThan(rows.length / 3);
});

test('outside a diff nothing is one click, and a guess never is', () => {
  for (const set of SETS)
    for (const row of set.rows) {
      const over = { ...set.over, ...row[4] };
      for (const wary of [{ outsideDiff: true }, { confidence: 'low' as const }])
        for (const edit of editsFor(set, set.prelude + row[1], { ...over, ...wary })) expect(edit.kind, row[0]).toBe('comment-only');
    }
});

test('a move is one edit, and no click where the diff shows only a part of it', () => {
  const text =
    'import torch\nfor i, b in enumerate(train_loader):\n    loss = model(b)\n    loss.backward()\n    optimizer.step()\n    lv = loss.item()\n    if i % 10 == 0:\n        print(lv)\n';
  const shown = (last: number) => `@@ -2,${last - 2} +2,${last - 1} @@\n${text.split('\n').slice(1, last).join('\n+')}`;
  const locations = [{ file: 'train.py', line: 6, symbol: null, provenBy: 'call-stack' as const }];
  const kinds = [6, 7, 8].map((last) => {
    const source = sourceTreeFrom({ files: [['train.py', text]], patches: [['train.py', shown(last).replace('\nfor', '\n for')]] });
    const { edits } = adviceOf('remove-sync', { source, params: { kind: 'item' } }, { locations })!;
    expect(edits.map(({ startLine, endLine }) => [startLine, endLine])).toEqual([[5, 8]]);
    return edits[0]!.kind;
  });
  expect(kinds).toEqual(['comment-only', 'comment-only', 'suggestion']);
});

/** What may stand in an edit besides names of the list: values, and the reader's own code moved or kept. */
const OWN = new Set(['True', 'False', 'None', 'npu', 'torch', 'torch_npu', 'local_rank', 'float', 'inf', 'optimizer']);

test('every name that an edit adds is on the allow-list and declared by its remedy', () => {
  for (const set of SETS)
    for (const row of set.rows) {
      const over = { ...set.over, ...row[4] };
      for (const { before, after } of editsFor(set, set.prelude + row[1], over)) {
        const old = new Set(before.match(/\w+/g));
        const added = (after.match(/[A-Za-z_]\w*/g) ?? []).filter((word) => !old.has(word) && !OWN.has(word));
        const { apis } = REMEDIES.get(set.remedy)!;
        for (const word of added) {
          const isName = (name: string): boolean => new RegExp(`(^|[.(])${word}([.)]|$)`).test(name);
          expect(apis.some(isName) || [...new Set(row[1].match(/\w+/g))].includes(word), `${row[0]}: ${word}`).toBe(true);
          if (apis.some(isName)) expect([...ALLOWED.keys()].some(isName), word).toBe(true);
        }
      }
    }
});

test('remedies without pairs change no code', () => {
  const covered = new Set(SETS.map(({ remedy }) => remedy));
  const source = TREES.plain!;
  for (const [id, remedy] of REMEDIES)
    if (!covered.has(id))
      for (const params of PARAMS[id] ?? [{}])
        expect(remedy.advise(findingOf(), contextOf({ params, source }))?.edits ?? [], id).toEqual([]);
});
