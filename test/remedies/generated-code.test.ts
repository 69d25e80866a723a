import { expect, test } from 'vitest';
import { codeFacts } from '../../src/facts/code/index.ts';
import { sourceTreeFrom } from '../../src/source/source-tree-from.ts';
import { adviceOf } from './situations.ts';

/** Thousands of the same: each took over 15 s when every one was compared with every other. */
const MAX_MS = 5_000;

const many = (n: number, text: (i: number) => string): string => Array.from({ length: n }, (_, i) => text(i)).join('\n');

function timed(look: () => unknown): number {
  const start = performance.now();
  look();
  return performance.now() - start;
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
