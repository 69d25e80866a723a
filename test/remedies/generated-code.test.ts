import { expect, test } from 'vitest';
import { codeFacts } from '../../src/facts/code/index.ts';
import { pinsOf } from '../../src/source/pins.ts';
import { sourceTreeFrom } from '../../src/source/source-tree-from.ts';
import { adviceOf } from './situations.ts';

/** Thousands of the same: each took over 15 s when every one was compared with every other. */
const MAX_MS = 5_000;

const many = (n: number, text: (i: number) => string): string => Array.from({ length: n }, (_, i) => text(i)).join('\n');

/** Computing of all threads: on a busy machine the clock tells of the neighbours. */
function timed(look: () => unknown): number {
  const start = process.cpuUsage();
  look();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

test('values read in every step', () => {
  const reads = many(1500, (i) => `    v${i} = loss.item()\n    if i % 10 == 0:\n      print(v${i})`);
  const source = sourceTreeFrom({
    files: [['train.py', `import torch\ndef f():\n  for b in train_loader:\n    loss.backward()\n${reads}\n`]],
  });
  expect(timed(() => adviceOf('remove-sync', { source, params: { kind: 'item' } }))).toBeLessThan(MAX_MS);
});

test('devices by ranks', () => {
  const devices = many(2000, (i) => `d = torch.device(f"npu:{a${i}.rank}")\na${i}.rank = dist.get_rank()`);
  const source = sourceTreeFrom({ files: [['train.py', `import torch, torch_npu\nimport torch.distributed as dist\n${devices}\n`]] });
  let found = 0;
  expect(timed(() => (found = codeFacts(source).migration.occurrences.length))).toBeLessThan(MAX_MS);
  expect(found).toBeGreaterThan(0);
});

test('permutations in a large diff', () => {
  const [old, now] = [many(2000, (i) => `-y${i} = ${'x.transpose(1,2)'.repeat(20)}`), many(2000, (i) => `z${i} = x.view(1,2)`)];
  const patch = `@@ -1,2000 +1,2001 @@\n+import torch, torch_npu\n${old}\n${now.replaceAll(/^/gm, '+')}\n`;
  const source = sourceTreeFrom({ files: [['train.py', `import torch, torch_npu\n${now}\n`]], patches: [['train.py', patch]] });
  expect(timed(() => codeFacts(source).migration)).toBeLessThan(MAX_MS);
});

test('versions in long lines', () => {
  const lines = ['pip '.repeat(490), `${'"'.repeat(700)}${' #'.repeat(640)}`, '['.repeat(1900)].map((line) => many(90, () => line));
  const files = ['setup.py', 'setup.cfg', 'run.sh'].flatMap((name) =>
    lines.map((line, i): [string, string] => [`${i}/${name}`, `torch\n${line}\n`]),
  );
  expect(timed(() => pinsOf(sourceTreeFrom({ files })))).toBeLessThan(MAX_MS);
  const quoted = 'deps = ["torch==2.1.0  # kept", "x"]\n';
  expect(pinsOf(sourceTreeFrom({ files: [['setup.py', quoted]] })).map(({ version }) => version)).toEqual(['2.1.0']);
  const script = 'echo install; pip list\nconda run pip install torch==2.1.0 && echo torch==9\n';
  expect(pinsOf(sourceTreeFrom({ files: [['run.sh', script]] })).map(({ line }) => line)).toEqual([2, 2]);
});
