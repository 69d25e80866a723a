import { describe, expect, test } from 'vitest';
import { repository } from './repository.ts';
import { adviceOf } from './situations.ts';

const ID = 'no-sync-accumulation';
const LOOP = 'for i, b in enumerate(loader):\n    loss = model(b)\n    loss.backward()\n    if (i + 1) % 4 == 0:\n        opt.step()\n';
const adviceFor = (head: string, body = LOOP) =>
  adviceOf(ID, { source: repository({ 'train.py': head + body }), params: { microSteps: 4 } })!;

describe('variants', () => {
  test('DDP: forward and backward inside no_sync, except for the last', () => {
    const advice = adviceFor('from torch.nn.parallel import DistributedDataParallel\n');
    expect(advice.text.en).toMatch(
      /^Each of the 4 micro batches reduces the gradients; only the last one needs to\. Wrap forward and backward/,
    );
    expect(advice.code).toContain('contextlib.nullcontext() if last else model.no_sync()');
    expect(advice.edits).toEqual([]);
    expect(advice.locations).toEqual([{ file: 'train.py', line: 4, symbol: null }]);
  });

  test.each([
    ['accelerate', 'from accelerate import Accelerator\n', 'gradient_accumulation_steps'],
    ['HF Trainer', 'from transformers import Trainer, AutoModel\n', 'gradient_accumulation_steps'],
    ['DeepSpeed', 'import deepspeed\n', 'gradient_accumulation_steps'],
    ['Lightning', 'import pytorch_lightning as pl\n', 'accumulate_grad_batches'],
    ['Lightning, new name', 'from lightning.pytorch import Trainer\nfrom transformers import AutoModel\n', 'accumulate_grad_batches'],
    ['Megatron', 'from megatron.training import pretrain\nimport deepspeed\n', '--global-batch-size'],
  ])('%s owns the loop: its option, never no_sync by hand', (_, head, option) => {
    const advice = adviceFor(head);
    expect(advice.code).toBeNull();
    const options = ['gradient_accumulation_steps', 'accumulate_grad_batches', '--global-batch-size'];
    expect(options.filter((name) => advice.text.en.includes(`\`${name}\``))).toEqual([option]);
    expect(advice.text.en).toContain('is not added by hand');
  });

  test('a model from transformers in a loop of one’s own is plain DDP', () => {
    expect(adviceFor('from transformers import BertModel\n').code).toContain('no_sync');
  });

  test('FSDP2 has a method of its own, FSDP1 has no_sync; both cost memory', () => {
    const two = adviceFor('from torch.distributed.fsdp import fully_shard\n');
    expect(two.code).toContain('model.set_requires_gradient_sync(last)');
    expect(two.code).not.toContain('no_sync');
    const one = adviceFor('from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n');
    expect(one.code).toContain('no_sync');
    for (const advice of [one, two]) expect(advice.preconditions.map(({ en }) => en)).toContain('Memory has room for the full gradients.');
  });

  test('no_sync that is there already is checked, not added', () => {
    expect(adviceFor('', `with model.no_sync():\n    pass\n${LOOP}`).text.en).toContain('uses `no_sync()` already');
    expect(adviceFor('# no_sync would help\n').text.en).not.toContain('already');
  });
});

test('a loop that steps every time is not an accumulation', () => {
  expect(adviceFor('', 'for b in loader:\n    model(b).backward()\n    opt.step()\n').locations).toEqual([]);
});

test('without source the frameworks are named', () => {
  expect(adviceOf(ID)!.text.en).toContain('accelerate, the HF Trainer, DeepSpeed and Lightning');
});
