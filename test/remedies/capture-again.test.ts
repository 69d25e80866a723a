import { describe, expect, test } from 'vitest';
import { applied, repository } from './repository.ts';
import { adviceOf } from './situations.ts';

const ID = 'capture-again';

describe('capture-again', () => {
  test('asks for what is missing and nothing else, in a fixed order', () => {
    const { text } = adviceOf(ID, { params: { missing: 'level,ranks' } })!;
    expect(text.en).toMatch(/^Capture the same step on every rank.* Use Level1/);
    expect(text.en).not.toContain('with_stack');
    expect(text.zh).toMatch(/^每张卡采集同一个迭代.*使用 Level1/);
  });

  test('an unknown word, or none, gives the full capture', () => {
    for (const params of [{ missing: 'colour' }, {}]) expect(adviceOf(ID, { params })!.text.en).toMatch(/Level1.*active=3.*every rank/);
  });

  test('the snippet steps the profiler, repeats once, skips the warm-up and names the rank', () => {
    const { code } = adviceOf(ID)!;
    for (const part of [
      'Level1',
      'skip_first=10',
      'warmup=1',
      'active=3',
      'repeat=1',
      'prof.step()',
      "os.environ.get('RANK', '0')",
      'P.ProfilerActivity.NPU',
      // What the profiler does not record, and rules on settings, versions and memory ask for.
      'prof.add_metadata_json("ci_env"',
      '"torch": torch.__version__',
      '"memory": torch.npu.mem_get_info()[1]',
    ]) {
      expect(code).toContain(part);
    }
    expect(code).not.toContain('with_stack=True');
  });

  test('options that an old package refuses are left out', () => {
    expect(adviceOf(ID, { torchNpu: '2.1.0' })!.code).not.toMatch(/gc_detect_threshold|export_type|mem_get_info/);
    expect(adviceOf(ID, { torchNpu: '2.1.0.post4' })!.code).toContain('export_type');
    expect(adviceOf(ID, { torchNpu: '2.1.0.post4' })!.code).not.toContain('gc_detect_threshold');
  });

  test('a schedule without repeat gets it in one click', () => {
    const text =
      'import torch_npu\np = torch_npu.profiler.profile(\n    schedule=torch_npu.profiler.schedule(wait=1, warmup=1, active=3),\n)\n';
    const source = repository({ 'train.py': text });
    const advice = adviceOf(ID, { source, params: { missing: 'repeat' } })!;
    expect(advice.edits.map((edit) => edit.kind)).toEqual(['suggestion']);
    expect(applied(source, advice.edits[0]!)).toBe(text.replace('active=3', 'active=3, repeat=1'));
    expect(advice.locations).toEqual([{ file: 'train.py', line: 2, symbol: null }]);
    const set = repository({ 'train.py': text.replace('active=3', 'active=3, repeat=2') });
    expect(adviceOf(ID, { source: set, params: { missing: 'repeat' } })!.edits).toEqual([]);
  });
});
