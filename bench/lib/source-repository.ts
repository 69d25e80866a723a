import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Deterministic numbers, so that every run examines the same code. */
function* numbers(seed: number): Generator<number> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

const WORDS = [
  'hidden',
  'states',
  'mask',
  'cache',
  'weight',
  'scale',
  'index',
  'token',
  'block',
  'score',
  'head',
  'query',
  'value',
  'shape',
];

interface Writer {
  readonly next: () => number;
  readonly word: () => string;
  readonly lines: string[];
}

/** A function of ordinary code: arithmetic, branches, calls, strings, comments. */
function plainFunction({ next, word, lines }: Writer, name: string, size: number): void {
  lines.push(`def ${name}(${word()}, ${word()}_b=None, *, eps=1e-6, **kwargs):`, `    """Returns the ${word()} of a ${word()}."""`);
  for (let i = 0; i < size; i++) {
    const kind = next();
    if (kind < 0.2)
      lines.push(`    if ${word()} is not None and len(${word()}) > ${Math.floor(next() * 90)}:`, `        ${word()} = ${word()}[${i}:]`);
    else if (kind < 0.4)
      lines.push(`    ${word()} = self_${word()}.get("${word()}", ${Math.floor(next() * 9)}) + ${word()} * ${i}  # ${word()}`);
    else if (kind < 0.6)
      lines.push(`    for ${word()}_i, ${word()} in enumerate(${word()}):`, `        ${word()}.append((${word()}_i, f"{${word()}}-${i}"))`);
    else if (kind < 0.8) lines.push(`    ${word()} = ${word()}_fn(${word()}, ${word()}=${word()}, scale=${i / 7}, name="${word()}")`);
    else lines.push(`    # ${word()} ${word()} ${word()}`, `    assert ${word()}, "${word()} must be set"`);
  }
  lines.push(`    return ${word()}`, '', '');
}

function moduleClass({ word, lines }: Writer, name: string): void {
  lines.push(
    `class ${name}(nn.Module):`,
    '    def __init__(self, dim, heads):',
    '        super().__init__()',
    '        self.proj = nn.Linear(dim, dim)',
    '        self.norm = nn.LayerNorm(dim)',
    '',
    '    def forward(self, x, mask=None):',
    '        b, n, c = x.shape',
    `        ${word()} = self.proj(self.norm(x)).reshape(b, n, -1).transpose(1, 2)`,
    '        x = x.permute(0, 2, 1).contiguous()',
    `        score = torch.softmax(x @ x.transpose(-2, -1) * ${0.125}, dim=-1)`,
    '        if mask is not None:',
    '            score = score.masked_fill(mask, 0.0)',
    '        return score',
    '',
    '',
  );
}

function trainingLoop({ lines }: Writer): void {
  lines.push(
    'def train(model, dataset, args):',
    '    loader = DataLoader(dataset, batch_size=args.batch_size, num_workers=args.num_workers)',
    '    model = DistributedDataParallel(model.npu(), device_ids=[args.local_rank])',
    '    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)',
    '    for step, batch in enumerate(loader):',
    '        images, target = batch[0].npu(), batch[1].npu()',
    '        loss = criterion(model(images), target)',
    '        loss.backward()',
    '        optimizer.step()',
    '        optimizer.zero_grad()',
    '        meter.update(loss.item(), images.size(0))',
    '        torch.npu.empty_cache()',
    '',
    '',
  );
}

const IMPORTS = {
  plain: ['import os', 'import json', 'from typing import Any'],
  model: ['import torch', 'import torch.nn as nn', 'import torch.nn.functional as F'],
  training: [
    'import argparse',
    'import torch',
    'import torch_npu',
    'from torch.utils.data import DataLoader',
    'from torch.nn.parallel import DistributedDataParallel',
  ],
} as const;

/** 3,000 files of 300 lines as a large training repository has them: most plain, every sixth a model, every thirtieth trains. */
function* sources(files: number, linesEach: number): Generator<[path: string, text: string]> {
  const random = numbers(7);
  const next = (): number => random.next().value as number;
  for (let i = 0; i < files; i++) {
    const kind = i % 30 === 0 ? 'training' : i % 6 === 0 ? 'model' : 'plain';
    const lines: string[] = [...IMPORTS[kind], '', ''];
    const writer: Writer = { next, lines, word: () => WORDS[Math.floor(next() * WORDS.length)]! };
    if (kind === 'training') {
      lines.push('parser = argparse.ArgumentParser()', "parser.add_argument('--num-workers', type=int, default=0)", '', '');
      trainingLoop(writer);
    }
    for (let n = 0; lines.length < linesEach; n++) {
      if (kind === 'model' && n % 3 === 0) moduleClass(writer, `Block${i}_${n}`);
      else plainFunction(writer, `${writer.word()}_${i}_${n}`, 10 + Math.floor(next() * 20));
    }
    yield [`project/part${i % 60}/${kind}_${i}.py`, `${lines.join('\n')}\n`];
  }
  for (let i = 0; i < 40; i++)
    yield [`scripts/run_${i}.sh`, `export HCCL_CONNECT_TIMEOUT=1200\ntorchrun project/part0/training_0.py --num-workers ${i}\n`];
  yield ['requirements.txt', 'torch==2.7.1\ntorch_npu==2.7.1\n'];
}

/** The repository below `dir`, made once. */
export async function sourceRepository(dir: string, files: number, linesEach: number): Promise<string> {
  const folder = join(dir, `source-${files}-${linesEach}`);
  if (existsSync(folder)) return folder;
  const making = `${folder}.part`;
  await rm(making, { recursive: true, force: true });
  for (const [path, text] of sources(files, linesEach)) {
    await mkdir(dirname(join(making, path)), { recursive: true });
    await writeFile(join(making, path), text);
  }
  await rename(making, folder);
  return folder;
}
