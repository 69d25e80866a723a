import { describe, expect, test } from 'vitest';
import { applied, repository } from './repository.ts';
import { adviceOf } from './situations.ts';

const ID = 'dataloader-workers';
const IMPORT = 'from torch.utils.data import DataLoader\n';
const SINGLE = { iterator: 'single', allRanks: true, intermittent: false };
const MULTI = { iterator: 'multi', allRanks: true, intermittent: false };

function edited(call: string, params = SINGLE): string | null {
  const source = repository({ 'train.py': `${IMPORT}loader = ${call}\n` });
  const [edit] = adviceOf(ID, { source, params })!.edits;
  if (edit === undefined) return null;
  expect(edit.kind).toBe('suggestion');
  return applied(source, edit).slice(`${IMPORT}loader = `.length, -1);
}

describe('text', () => {
  test('one process: set workers, and how many', () => {
    const { text } = adviceOf(ID, { params: SINGLE })!;
    expect(text.en).toMatch(/^The main process loads each batch itself.*`num_workers=4`.*cores divided by its cards/);
    expect(text.zh).toContain('上限为核数除以卡数');
  });

  test('several processes: more only while cores are idle, then cheaper samples', () => {
    const { text, title } = adviceOf(ID, { params: MULTI })!;
    expect(text.en).toContain('Raise `num_workers` only while the host has idle CPU cores');
    expect(text.en).toContain('make each sample cheaper');
    expect(text.en).not.toContain('num_workers=4');
    expect(title.zh).toBe('提升数据加载能力');
  });

  test('a full host gets no more workers', () => {
    const { text } = adviceOf(ID, { params: { ...MULTI, hostSaturated: true } })!;
    expect(text.en).toContain('more workers do not help');
    expect(text.en).not.toContain('Raise `num_workers`');
  });

  test('some ranks only: compare those first', () => {
    const { text } = adviceOf(ID, { params: { ...SINGLE, allRanks: false } }, { ranks: [3, 5] })!;
    expect(text.en).toMatch(/^Only on rank 3, 5 does the card wait/);
    expect(text.zh).toMatch(/^只有卡 3、5 在等待/);
  });

  test('an intermittent stall points at files and workers', () => {
    expect(adviceOf(ID, { params: { ...MULTI, intermittent: true } })!.text.en).toContain('comes and goes');
  });

  test('without a word from the profile both cases are given', () => {
    expect(adviceOf(ID)!.text.en).toContain('does not show how batches are loaded');
  });

  test('the source speaks when the profile does not', () => {
    const some = repository({ 'train.py': `${IMPORT}loader = DataLoader(ds, num_workers=8)\n` });
    expect(adviceOf(ID, { source: some })!.text.en).toContain('Worker processes load the data');
    const option = repository({ 'train.py': `${IMPORT}loader = DataLoader(ds, num_workers=args.workers)\n` });
    expect(adviceOf(ID, { source: option, params: SINGLE })!.text.en).toContain('comes from an option that is 0 in this run');
  });
});

describe('a loader that the framework builds', () => {
  const of = (files: Record<string, string>) => adviceOf(ID, { source: repository(files), params: SINGLE })!;

  test.each<[string, Record<string, string>, string, string[]]>([
    [
      'Hugging Face Trainer',
      { 'sft.py': 'from transformers import Trainer, TrainingArguments\nargs = TrainingArguments(\n    dataloader_num_workers=0,\n)\n' },
      'Hugging Face Trainer builds the loader: the option is `dataloader_num_workers`, with `dataloader_persistent_workers` and `dataloader_prefetch_factor`.',
      ['sft.py:3'],
    ],
    [
      'LLaMA-Factory',
      { 'run.sh': 'llamafactory-cli train a.yaml\n', 'a.yaml': 'stage: sft\n# dataloader_num_workers: 1\ndataloader_num_workers: 0\n' },
      'LLaMA-Factory builds the loader: the option is `dataloader_num_workers`, with',
      ['a.yaml:3'],
    ],
    [
      'Megatron',
      { 'pretrain.sh': 'torchrun pretrain_gpt.py \\\n  --tensor-model-parallel-size 2 \\\n  --num-workers 0\n' },
      'Megatron / MindSpeed builds the loader: the option is `--num-workers`.',
      ['pretrain.sh:3'],
    ],
    [
      'verl',
      { 'run.sh': 'python3 -m verl.trainer.main_ppo \\\n  data.dataloader_num_workers=0\n' },
      'verl builds the loader: the option is `data.dataloader_num_workers`.',
      ['run.sh:2'],
    ],
  ])('%s: its own option, and where it is set', (_, files, text, places) => {
    const advice = of(files);
    expect(advice.text.en).toContain(text);
    expect(advice.locations.map(({ file, line }) => `${file}:${line}`)).toEqual(places);
  });

  test('none where the repository has a loader of its own, or no framework that is known', () => {
    expect(of({ 'a.py': `from transformers import Trainer\n${IMPORT}loader = DataLoader(ds)\n` }).text.en).not.toContain(
      'builds the loader',
    );
    expect(of({ 'a.py': 'import torch\n' }).text.en).not.toContain('builds the loader');
  });
});

describe('an option behind the number', () => {
  const source = repository({
    'train.py': `${IMPORT}parser.add_argument('--workers', type=int, default=0)\nloader = DataLoader(ds, num_workers=args.workers)\n`,
    'run.sh': 'torchrun train.py \\\n  --workers 0\n',
  });

  test('the advice points to its definition and to the command line that sets it', () => {
    const { text, locations, edits } = adviceOf(ID, { source, params: SINGLE })!;
    expect(text.en).toContain(
      '`num_workers` comes from `--workers`, by default `0` (`train.py:2`), which `run.sh:2` sets: change it there.',
    );
    expect(text.zh).toContain('`num_workers` 来自 `--workers`，默认值为 `0`（`train.py:2`），由 `run.sh:2` 设置：在那里修改。');
    expect(locations.map(({ file, line }) => `${file}:${line}`)).toEqual(['train.py:3', 'train.py:2', 'run.sh:2']);
    expect(edits).toEqual([]);
  });

  test('a name that holds a number is that number; a hostile name stays a literal', () => {
    const named = repository({ 'train.py': `${IMPORT}N = 8\nloader = DataLoader(ds, num_workers=N)\n` });
    expect(adviceOf(ID, { source: named })!.text.en).toContain('Worker processes load the data');
    const odd = repository({
      'a`b\u202e.py': `${IMPORT}p.add_argument('--w', default='\u202e\`x')\nloader = DataLoader(ds, num_workers=args.w)\n`,
    });
    expect(adviceOf(ID, { source: odd, params: SINGLE })!.text.en).not.toMatch(/\u202e|``/);
  });
});

describe('edit', () => {
  test.each([
    ['DataLoader(ds)', 'DataLoader(ds, num_workers=4, persistent_workers=True, prefetch_factor=4)'],
    ['DataLoader(ds, prefetch_factor=2)', 'DataLoader(ds, prefetch_factor=2, num_workers=4, persistent_workers=True)'],
    ['DataLoader(ds, num_workers=0)', 'DataLoader(ds, num_workers=4, persistent_workers=True, prefetch_factor=4)'],
    [
      'DataLoader(\n    ds,\n    batch_size=8,\n)',
      'DataLoader(\n    ds,\n    batch_size=8,\n    num_workers=4,\n    persistent_workers=True,\n    prefetch_factor=4,\n)',
    ],
  ])('%j', (before, after) => {
    expect(edited(before)).toBe(after);
  });

  test('workers that are there are kept between epochs', () => {
    expect(edited('DataLoader(ds, num_workers=8)', MULTI)).toBe('DataLoader(ds, num_workers=8, persistent_workers=True)');
    expect(edited('DataLoader(ds, num_workers=8, persistent_workers=True)', MULTI)).toBeNull();
  });

  test('none for an expression that starts at 0, a positional number, **kwargs, or a profile that contradicts', () => {
    expect(edited('DataLoader(ds, num_workers=args.n)')).toBeNull();
    expect(edited('DataLoader(ds, 8, True, None, None, 0)')).toBeNull();
    expect(edited('DataLoader(ds, **options)')).toBeNull();
    expect(edited('DataLoader(ds, num_workers=8)', SINGLE)).toBeNull();
    expect(edited('DataLoader(ds)', MULTI)).toBeNull();
  });

  test('none for a loader that is made in the epoch loop', () => {
    const source = repository({ 'train.py': `${IMPORT}for e in epochs:\n    loader = DataLoader(ds)\n` });
    expect(adviceOf(ID, { source, params: SINGLE })!.edits).toEqual([]);
  });

  test('applying it twice changes nothing', () => {
    expect(edited(edited('DataLoader(ds)')!)).toBeNull();
  });
});

describe('location', () => {
  test('validation and test loaders are left out', () => {
    const text = `${IMPORT}train_loader = DataLoader(train_set)\nval_loader = DataLoader(ds)\nx = DataLoader(testset)\ndef evaluate():\n    return DataLoader(ds)\nvalues = DataLoader(latest)\n`;
    const { locations } = adviceOf(ID, { source: repository({ 'train.py': text }), params: SINGLE })!;
    expect(locations.map(({ line }) => line)).toEqual([2, 7]);
  });

  test('of several loaders, the one in the file that the profile proves is edited', () => {
    const source = repository({ 'a.py': `${IMPORT}l = DataLoader(x)\n`, 'b.py': `${IMPORT}l = DataLoader(y)\n` });
    const locations = [{ file: 'b.py', line: 9, symbol: null, provenBy: 'call-stack' as const }];
    const advice = adviceOf(ID, { source, params: SINGLE }, { locations })!;
    expect(advice.edits.map(({ file }) => file)).toEqual(['b.py']);
    expect(advice.locations.map(({ file }) => file)).toEqual(['b.py', 'a.py']);
  });

  test('two training loaders are both named and neither is edited', () => {
    const text = `${IMPORT}a = DataLoader(x)\nb = DataLoader(y)\n`;
    const advice = adviceOf(ID, { source: repository({ 'train.py': text }), params: SINGLE })!;
    expect([advice.locations.length, advice.edits.length]).toEqual([2, 0]);
  });
});
