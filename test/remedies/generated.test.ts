import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RemedyContext } from '../../src/model/remedy.ts';
import type { Edit } from '../../src/model/report.ts';
import type { SourceTree } from '../../src/model/source-tree.ts';
import { applyLineEdit } from '../../src/source/line-edit.ts';
import { parsePython } from '../../src/source/python-parser.ts';
import { descend } from '../../src/source/syntax-tree.ts';
import { repository } from './repository.ts';
import { adviceOf } from './situations.ts';

/** Every remedy that edits Python, with the evidence it needs. */
const ASKED: readonly (readonly [id: string, params: RemedyContext['params'], soc: RemedyContext['soc']])[] = [
  ['dataloader-workers', { iterator: 'single' }, 'A2'],
  ['dataloader-workers', { iterator: 'multi' }, 'A2'],
  ['batch-transfer', { pageable: true }, 'A2'],
  ['broadcast-buffers-off', { broadcasts: 8 }, 'A2'],
  ['jit-compile-off', { calls: 40, shapes: 'dynamic' }, 'gen-1'],
  ['remove-sync', { kind: 'item' }, 'A2'],
  ['remove-sync', { kind: 'device' }, 'A2'],
  ['remove-sync', { kind: 'shape' }, 'A2'],
  ['keep-cached-memory', { releases: 1 }, 'A2'],
  ['keep-layout', { types: 'Transpose' }, 'A2'],
  ['capture-again', { missing: 'repeat' }, 'A2'],
  ['set-environment', { kind: 'symptom', name: 'ASCEND_LAUNCH_BLOCKING' }, 'A2'],
];

const space = fc.constantFrom('', '', '', ' ', '  ');
const gap = fc.constantFrom('', '', ' ', '\n', '\n        ', '  # 注释 )\n  ', ' \\\n  ', '\n# a, b\n');
const expression = fc.constantFrom(
  'ds',
  'build(cfg, (1, 2))',
  'f"{a!r:>{w}}"',
  "rb'x)'",
  '"""\n)#"""',
  '(n := 4)',
  'lambda x, *a, **k: x',
  '[i for i in xs if i % 2]',
  '{"k": v, **more}',
  'a if b else c',
  'not x',
  'await_(z)',
  'xs[1:2, ...]',
  '-1',
);
const keyword = fc
  .tuple(fc.constantFrom('batch_size', 'shuffle', 'collate_fn', 'device_ids', '数据'), space, gap, expression)
  .map((parts) => {
    const [name, a, b, value] = parts;
    return `${name}${a}=${b}${value}`;
  });
/** The arguments of a call, as people and formatters leave them. */
const list = fc
  .tuple(
    fc.array(fc.tuple(gap, expression), { maxLength: 2 }),
    fc.uniqueArray(keyword, { maxLength: 2, selector: (k) => k.split(/\W/u)[0] }),
    fc.boolean(),
    gap,
  )
  .map(([positional, named, hasComma, end]) => {
    const parts = [...positional.map(([before, value]) => before + value), ...named];
    return parts.length === 0 ? end : `${parts.join(', ')}${hasComma ? ',' : ''}${end}`;
  });

const callOf = (name: string, more = ''): fc.Arbitrary<string> =>
  list.map((text) => `${name}(${more === '' ? text : more + (text === '' ? '' : `, ${text}`)})`);

/** Lines that a remedy is about, in any shape. */
const target = fc.oneof(
  { weight: 1, arbitrary: callOf('DataLoader').map((call) => `loader = ${call}`) },
  { weight: 1, arbitrary: callOf('DataLoader').map((call) => `train(${call}, 3)  # 训练`) },
  { weight: 1, arbitrary: callOf('torch.utils.data.DataLoader').map((call) => `if (m := ${call}) is not None: pass`) },
  { weight: 1, arbitrary: callOf('DDP').map((call) => `model = ${call}`) },
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      'torch.npu.set_compile_mode(jit_compile=True)',
      'x = x.permute(0, 2, 1).contiguous().view(b, -1)',
      's = q @ k.transpose(-2, -1).contiguous()',
      'x[x > 0.5] = 0  # 截断',
      'torch.npu.synchronize()',
      'torch.npu.empty_cache()',
      'value = loss.item()',
      's = torch_npu.profiler.schedule(wait=1, active=3)',
      'os.environ["ASCEND_LAUNCH_BLOCKING"] = "1"',
      'torch_npu.npu.config.allow_internal_format = True',
    ),
  },
);

/** Lines that nobody is to touch, although they look alike. */
const other = fc.constantFrom(
  'loader = make(DataLoader=1)',
  's = "DataLoader(ds)"',
  "s = f'{x[x > 0]} torch.npu.synchronize()'",
  'text = """\ntorch.npu.empty_cache()\nx[x > 0] = 0\n"""',
  'table["a"] = 0',
  'x[idx] = 0',
  'x = x.view(-1)',
  '# torch.npu.synchronize()',
  'y: int = 3',
  'print(f"{value:.3f}", end="")',
  'assert (t := x.shape), "x[t] = 0"',
  'del x[0]',
  'x[3], y = 1, 2',
  'global state',
  'synchronize()',
  'd = dict(pin_memory=True, num_workers=0)',
);

const HEAD = `import os
import torch
import torch_npu
from torch.utils.data import DataLoader
from torch.nn.parallel import DistributedDataParallel as DDP
`;

interface Program {
  readonly text: string;
  readonly hasTarget: boolean;
}

const program = (targets: fc.Arbitrary<readonly string[]>): fc.Arbitrary<Program> =>
  fc
    .record({
      coding: fc.constantFrom('', '# -*- coding: gbk -*-\n', '#!/usr/bin/env python\n# coding: utf-8\n', '\ufeff'),
      targets,
      others: fc.array(other, { maxLength: 4 }),
      seed: fc.array(fc.nat(9), { minLength: 9, maxLength: 9 }),
      unit: fc.constantFrom('    ', '\t', '  '),
      lineBreak: fc.constantFrom('\n', '\n', '\r\n'),
      isClosed: fc.boolean(),
    })
    .map(({ coding, targets: wanted, others, seed, unit, lineBreak, isClosed }) => {
      const lines = [...wanted, ...others].map((line, i) => [seed[i % 9]!, line] as const).toSorted((a, b) => a[0] - b[0]);
      const at = (place: number): string[] => lines.filter(([key]) => key % 3 === place).map(([, line]) => line);
      // A line of several keeps its own indentation inside brackets and strings.
      const block = (depth: number, own: readonly string[]): string[] => own.map((line) => unit.repeat(depth) + line);
      const code = [
        ...at(0).map((line) => line.replace(/^global.*/, 'pass')),
        '@decorated(key=lambda f: f)',
        'def fit(model, loader, *, log=10, **options) -> "Result[x]":',
        ...block(1, ['"""Doc: DataLoader(ds)"""', 'x = torch.rand(3)', ...at(1)]),
        `${unit}for step, (a, b) in enumerate(loader):`,
        ...block(2, ['a = a.npu()', 'loss = model(a)', 'loss.backward()', ...at(2), 'if step % log == 0:']),
        `${unit.repeat(3)}print(step)`,
        `${unit}return x`,
        'if __name__ == "__main__":',
        `${unit}fit(None, None)`,
      ];
      const text = `${coding}${HEAD}${code.join('\n')}${isClosed ? '\n' : ''}`;
      return { text: text.replaceAll('\n', lineBreak), hasTarget: wanted.length > 0 };
    });

function editsFor(source: SourceTree, [id, params, soc]: (typeof ASKED)[number]): readonly Edit[] {
  return adviceOf(id, { source, params, soc })?.edits ?? [];
}

const treeOf = (text: string): SourceTree => repository({ 'train.py': text });

const commentsIn = (text: string): number =>
  [...descend(parsePython('train.py', text).module!.root)].filter(({ kind }) => kind === 'comment').length;

test('over generated programs every edit fits, parses, keeps comments and line breaks, and is not asked for again', () => {
  fc.assert(
    fc.property(program(fc.array(target, { minLength: 2, maxLength: 6 })), ({ text }) => {
      const isWhole = parsePython('train.py', text).module!.brokenLines.length === 0;
      const tree = treeOf(text);
      for (const asked of ASKED) {
        const edits = editsFor(tree, asked);
        // Files with a syntax error are looked at and never edited; environment lines are read line by line.
        if (!isWhole && asked[0] !== 'set-environment' && asked[0] !== 'keep-layout') expect(edits).toEqual([]);
        if (!isWhole) continue;
        let result = text;
        for (const edit of edits.toSorted((a, b) => b.startLine - a.startLine)) {
          const next = applyLineEdit(result, edit);
          expect(next, asked[0]).not.toBeNull();
          expect(next).not.toBe(result);
          result = next!;
        }
        if (edits.length === 0) continue;
        expect(parsePython('train.py', result).module!.brokenLines).toEqual([]);
        expect(commentsIn(result)).toBe(commentsIn(text));
        if (text.includes('\r\n')) expect(result.replaceAll('\r\n', '')).not.toContain('\n');
        else expect(result).not.toContain('\r');
        for (const again of editsFor(treeOf(result), asked)) expect(edits.map(({ after }) => after)).not.toContain(again.after);
      }
    }),
    { numRuns: 35 },
  );
});

test('generated programs without a pattern are left alone', () => {
  const plain = program(fc.constant([])).map(({ text }) => text.replaceAll('a = a.npu()', 'a = move(a)'));
  fc.assert(
    fc.property(plain, (text) => {
      const tree = treeOf(text);
      for (const asked of ASKED) if (asked[0] !== 'jit-compile-off') expect(editsFor(tree, asked)).toEqual([]);
    }),
    { numRuns: 15 },
  );
});
