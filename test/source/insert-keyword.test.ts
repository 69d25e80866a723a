import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findCalls } from '../../src/source/calls.ts';
import { insertKeyword, insertKeywords } from '../../src/source/insert-keyword.ts';
import { applyLineEdit } from '../../src/source/line-edit.ts';
import { parsePython } from '../../src/source/python-parser.ts';

const IMPORT = 'from torch.nn.parallel import DistributedDataParallel as DDP\n';

function outcomeFor(text: string) {
  const { module } = parsePython('train.py', text);
  const calls = findCalls(module!, ['torch.nn.parallel.DistributedDataParallel']);
  return insertKeyword(module!, calls.at(-1)!, 'broadcast_buffers', 'False');
}

function rewrite(text: string): string {
  const { edit, refusal } = outcomeFor(text);
  if (edit === null) throw new Error(refusal);
  expect(
    text
      .split('\n')
      .slice(edit.startLine - 1, edit.endLine)
      .join('\n'),
  ).toBe(edit.before);
  return applyLineEdit(text, edit)!;
}

const pair = (name: string, before: string, after: string): [string, string, string] => [name, before, after];

describe('insertKeyword, before → after', () => {
  test.each([
    pair('one line', 'model = DDP(model, device_ids=[rank])\n', 'model = DDP(model, device_ids=[rank], broadcast_buffers=False)\n'),
    pair('one positional argument', 'model = DDP(model)\n', 'model = DDP(model, broadcast_buffers=False)\n'),
    pair('no argument', 'make = DDP()\n', 'make = DDP(broadcast_buffers=False)\n'),
    pair('one line with trailing comma', 'model = DDP(model,)\n', 'model = DDP(model, broadcast_buffers=False,)\n'),
    pair('no line break at the end of the file', 'model = DDP(model)', 'model = DDP(model, broadcast_buffers=False)'),
    pair(
      'one argument a line, trailing comma',
      'model = DDP(\n    model,\n    device_ids=[rank],\n)\n',
      'model = DDP(\n    model,\n    device_ids=[rank],\n    broadcast_buffers=False,\n)\n',
    ),
    pair(
      'one argument a line, no trailing comma',
      'model = DDP(\n    model,\n    device_ids=[rank]\n)\n',
      'model = DDP(\n    model,\n    device_ids=[rank],\n    broadcast_buffers=False\n)\n',
    ),
    pair(
      'Chinese comment after the last argument',
      'model = DDP(\n    model,\n    device_ids=[rank]  # 只用本卡\n)\n',
      'model = DDP(\n    model,\n    device_ids=[rank],  # 只用本卡\n    broadcast_buffers=False\n)\n',
    ),
    pair(
      'comment before the closing parenthesis',
      'model = DDP(\n    model,\n    device_ids=[rank],\n    # static_graph=True,\n)\n',
      'model = DDP(\n    model,\n    device_ids=[rank],\n    broadcast_buffers=False,\n    # static_graph=True,\n)\n',
    ),
    pair(
      'aligned with the parenthesis, closed on the last line',
      'model = DDP(model,\n            device_ids=[rank])\n',
      'model = DDP(model,\n            device_ids=[rank], broadcast_buffers=False)\n',
    ),
    pair(
      'aligned with the parenthesis, closed on its own line',
      'model = DDP(model,\n            device_ids=[rank]\n            )\n',
      'model = DDP(model,\n            device_ids=[rank],\n            broadcast_buffers=False\n            )\n',
    ),
    pair(
      'all arguments on the first line',
      'model = DDP(model, device_ids=[rank]\n)\n',
      'model = DDP(model, device_ids=[rank], broadcast_buffers=False\n)\n',
    ),
    pair(
      'comma first',
      'model = DDP(\n    model\n  , device_ids=[rank]\n)\n',
      'model = DDP(\n    model\n  , device_ids=[rank], broadcast_buffers=False\n)\n',
    ),
    pair(
      'nested call as the argument',
      'model = DDP(build(cfg, (1, 2)), device_ids=[rank])\n',
      'model = DDP(build(cfg, (1, 2)), device_ids=[rank], broadcast_buffers=False)\n',
    ),
    pair(
      'nested call over several lines',
      'model = DDP(\n    build(\n        cfg,\n    ),\n)\n',
      'model = DDP(\n    build(\n        cfg,\n    ),\n    broadcast_buffers=False,\n)\n',
    ),
    pair(
      'nested call closed with the outer one',
      'model = DDP(build(\n    cfg,\n))\n',
      'model = DDP(build(\n    cfg,\n), broadcast_buffers=False)\n',
    ),
    pair('inside another call', 'model = wrap(DDP(model), 3)\n', 'model = wrap(DDP(model, broadcast_buffers=False), 3)\n'),
    pair(
      'inside a walrus',
      'if (m := DDP(model)) is not None:\n    pass\n',
      'if (m := DDP(model, broadcast_buffers=False)) is not None:\n    pass\n',
    ),
    pair(
      'beside an f-string',
      'log(f"rank {rank!r:>3} wraps {name}", DDP(model)); x = f"{a}"\n',
      'log(f"rank {rank!r:>3} wraps {name}", DDP(model, broadcast_buffers=False)); x = f"{a}"\n',
    ),
    pair(
      'tabs',
      'def f():\n\tmodel = DDP(\n\t\tmodel,\n\t)\n',
      'def f():\n\tmodel = DDP(\n\t\tmodel,\n\t\tbroadcast_buffers=False,\n\t)\n',
    ),
    pair('CRLF', 'model = DDP(\r\n    model,\r\n)\r\n', 'model = DDP(\r\n    model,\r\n    broadcast_buffers=False,\r\n)\r\n'),
    pair(
      'CRLF, no trailing comma, comment',
      'model = DDP(\r\n    model  # 模型\r\n)\r\n',
      'model = DDP(\r\n    model,  # 模型\r\n    broadcast_buffers=False\r\n)\r\n',
    ),
    pair(
      'comma on a line of its own',
      'model = DDP(\n    model\n    ,\n)\n',
      'model = DDP(\n    model\n    ,\n    broadcast_buffers=False,\n)\n',
    ),
    pair(
      'backslash before the closing parenthesis',
      'model = DDP(\n    model \\\n)\n',
      'model = DDP(\n    model, \\\n    broadcast_buffers=False\n)\n',
    ),
    pair('only a comment in the list', 'make = DDP(\n    # later\n)\n', 'make = DDP(\n    # later\n    broadcast_buffers=False,\n)\n'),
    pair('a string that holds a parenthesis', 'model = DDP(load("a)b#c"))\n', 'model = DDP(load("a)b#c"), broadcast_buffers=False)\n'),
    pair('emoji before the call', 's = "😀"; model = DDP(model)\n', 's = "😀"; model = DDP(model, broadcast_buffers=False)\n'),
    pair(
      'conditional',
      'model = DDP(model) if world > 1 else model\n',
      'model = DDP(model, broadcast_buffers=False) if world > 1 else model\n',
    ),
  ])('%s', (_, before, after) => {
    expect(rewrite(IMPORT + before)).toBe(IMPORT + after);
  });

  test('a file with a BOM keeps it', () => {
    expect(rewrite(`\ufeff${IMPORT}m = DDP(m)\n`)).toBe(`\ufeff${IMPORT}m = DDP(m, broadcast_buffers=False)\n`);
  });

  test('only the lines that change are replaced', () => {
    const { edit } = outcomeFor(`${IMPORT}\nmodel = DDP(\n    model,\n    device_ids=[rank],\n)\nx = 1\n`);
    expect(edit).toEqual({
      file: 'train.py',
      startLine: 5,
      endLine: 5,
      before: '    device_ids=[rank],',
      after: '    device_ids=[rank],\n    broadcast_buffers=False,',
    });
  });
});

describe('insertKeywords', () => {
  const three = [
    { keyword: 'a', value: '1' },
    { keyword: 'b', value: 'True' },
    { keyword: 'c', value: '"npu"' },
  ];
  test.each([
    ['m = DDP(m)\n', 'm = DDP(m, a=1, b=True, c="npu")\n'],
    ['m = DDP(\n  m,\n)\n', 'm = DDP(\n  m,\n  a=1,\n  b=True,\n  c="npu",\n)\n'],
    ['m = DDP(\r\n  m  # 模型\r\n)\r\n', 'm = DDP(\r\n  m,  # 模型\r\n  a=1,\r\n  b=True,\r\n  c="npu"\r\n)\r\n'],
  ])('%j', (before, after) => {
    const { module } = parsePython('train.py', IMPORT + before);
    const [call] = findCalls(module!, ['torch.nn.parallel.DistributedDataParallel']);
    expect(applyLineEdit(IMPORT + before, insertKeywords(module!, call!, three).edit!)).toBe(IMPORT + after);
  });
});

describe('insertKeyword refuses', () => {
  test.each([
    ['**kwargs', 'm = DDP(m, **options)\n', 'the call takes *args or **kwargs'],
    ['*args', 'm = DDP(*parts)\n', 'the call takes *args or **kwargs'],
    ['a keyword that is there', 'm = DDP(m, broadcast_buffers=True)\n', 'the keyword is already there'],
    ['a generator argument', 'm = DDP(x for x in xs)\n', 'no argument list'],
    ['an f-string', 's = f"{DDP(m)}"\n', 'inside an f-string'],
    ['a file with a syntax error', 'm = DDP(m)\nif x\n', 'syntax error in the file'],
    ['a Python 2 file', 'm = DDP(m)\nprint "done"\n', 'syntax error in the file'],
  ])('%s', (_, text, refusal) => {
    expect(outcomeFor(IMPORT + text)).toEqual({ edit: null, refusal });
  });

  test('the second time', () => {
    const once = rewrite(`${IMPORT}m = DDP(m)\n`);
    expect(outcomeFor(once).refusal).toBe('the keyword is already there');
  });
});

/** Blank space, comments and line breaks as people and formatters leave them inside parentheses. */
const space = fc.constantFrom('', ' ', '  ', '\n', '\n    ', '\n\t', '  # 注释\n    ', ' #)\n', '\n\n', ' \\\n  ', '\f', '\n# a, b\n    ');
const argument = fc.constantFrom(
  'model',
  'build(\n  x,\n)',
  '[1, (2, 3)]',
  '"a,)#"',
  "f'{a}{b!r}'",
  '{"k": v}',
  'lambda x: x',
  'a if b else c',
  '(y := 2)',
  '-1',
  '"""\n)"""',
  'not x',
  'xs[1:2]',
  'await_(z)',
);
const named = fc
  .tuple(fc.constantFrom('device_ids', 'output_device', 'bucket_cap_mb', '设备'), space, space, argument)
  .map(([k, a, b, v]) => `${k}${a}=${b}${v}`);

test('over odd formatting, the edit adds that keyword and nothing else, and a second one is refused', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(space, argument, space), { maxLength: 3 }),
      fc.uniqueArray(fc.tuple(space, named, space), { maxLength: 3, selector: ([, text]) => text.split(/\W/)[0] }),
      fc.boolean(),
      space,
      fc.boolean(),
      fc.boolean(),
      (positional, keywords, trailingComma, tail, crlf, indented) => {
        const parts = [...positional, ...keywords].map((part) => part.join(''));
        const list = parts.join(',') + (trailingComma && parts.length > 0 ? ',' : '') + tail;
        const call = `m = outer(1, DDP(${list}))`;
        const body = indented ? `def f():\n    # 前\n    ${call}\n    return m\n` : `${call}\nx = 1\n`;
        const text = (IMPORT + body).replaceAll('\n', crlf ? '\r\n' : '\n');
        fc.pre(parsePython('a.py', text).module!.brokenLines.length === 0);

        const after = rewrite(text);
        // Leaving out the new argument gives the old text back, up to one comma, blanks and one line break.
        const squeeze = (s: string) => s.replaceAll(/[\s,\\]/g, '');
        expect(squeeze(after)).not.toBe(squeeze(text));
        expect(squeeze(after).replace('broadcast_buffers=False', '')).toBe(squeeze(text));
        expect(after.split('\n').filter((line) => line.endsWith('\r')).length).toBe(crlf ? after.split('\n').length - 1 : 0);
        expect(outcomeFor(after).refusal).toBe('the keyword is already there');
      },
    ),
    { numRuns: 600 },
  );
});
