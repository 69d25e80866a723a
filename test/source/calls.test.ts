import { describe, expect, test } from 'vitest';
import { argumentOf, findCalls, findMethodCalls } from '../../src/source/calls.ts';
import { parsePython } from '../../src/source/python-parser.ts';

const LOADER = 'torch.utils.data.DataLoader';
const calls = (text: string) => findCalls(parsePython('a.py', `from torch.utils.data import DataLoader\n${text}`).module!, [LOADER]);

describe('findCalls', () => {
  test('arguments come with keyword, position and text as written', () => {
    const [call] = calls('l = DataLoader(ds, 64,  # 批大小\n    num_workers=args.workers, pin_memory=True)\n');
    expect(call!.arguments.map(({ keyword, position, text, valueKind }) => ({ keyword, position, text, valueKind }))).toEqual([
      { keyword: null, position: 0, text: 'ds', valueKind: 'identifier' },
      { keyword: null, position: 1, text: '64', valueKind: 'integer' },
      { keyword: 'num_workers', position: null, text: 'args.workers', valueKind: 'attribute' },
      { keyword: 'pin_memory', position: null, text: 'True', valueKind: 'true' },
    ]);
    expect(call!.span).toEqual({ startLine: 2, endLine: 3, startColumn: 4, endColumn: 46 });
    expect([call!.hasStarArgs, call!.hasKeywordArgs]).toEqual([false, false]);
  });

  test('the sixth positional argument is num_workers', () => {
    const [call] = calls('l = DataLoader(ds, 8, True, None, None, 4)\n');
    expect(argumentOf(call!, 'num_workers', 5)!.text).toBe('4');
    expect(argumentOf(call!, 'num_workers')).toBeNull();
  });

  test('*args and **kwargs are flagged and do not shift positions', () => {
    const [call] = calls('l = DataLoader(ds, *rest, **options)\n');
    expect([call!.hasStarArgs, call!.hasKeywordArgs]).toEqual([true, true]);
    expect(call!.arguments.map((argument) => argument.text)).toEqual(['ds']);
  });

  test('a call inside another call, a walrus and an f-string is found each time', () => {
    expect(calls('wrap(DataLoader(ds))\nif (l := DataLoader(ds)): pass\nprint(f"{len(DataLoader(ds))} batches")\n')).toHaveLength(3);
  });

  test('what stands around a call is named, innermost first', () => {
    const [call] = calls(
      'class Trainer:\n    def fit(self):\n        for epoch in range(3):\n            if rank == 0:\n                l = DataLoader(ds)\n',
    );
    expect(call!.enclosing).toEqual([
      { kind: 'if', text: 'rank == 0', line: 5 },
      { kind: 'for', text: null, line: 4 },
      { kind: 'function', text: 'fit', line: 3 },
      { kind: 'class', text: 'Trainer', line: 2 },
    ]);
  });

  test('an else branch does not claim the condition of its if', () => {
    const [call] = calls('if rank == 0:\n    pass\nelse:\n    l = DataLoader(ds)\n');
    expect(call!.enclosing).toEqual([{ kind: 'else', text: null, line: 4 }]);
  });

  test('a generator as the only argument has no argument list', () => {
    const [call] = calls('l = DataLoader(x for x in xs)\n');
    expect(call!.list).toBeNull();
    expect(call!.arguments).toEqual([]);
  });

  test('a comment or a string that looks like a call is none', () => {
    expect(calls('# DataLoader(ds)\ns = "DataLoader(ds)"\n')).toEqual([]);
  });
});

test('findMethodCalls finds a method on any object', () => {
  const { module } = parsePython('a.py', 'model.eval()\nself.net.eval()\neval("1")\nloss.backward()\n');
  expect(findMethodCalls(module!, ['eval', 'backward']).map((call) => call.written)).toEqual([
    'model.eval',
    'self.net.eval',
    'loss.backward',
  ]);
});
