import { describe, expect, test } from 'vitest';
import { wordsOf } from '../../src/remedies/reading/buffer-hazards.ts';
import { settingsOf, withValue } from '../../src/remedies/reading/launch-settings.ts';
import { choice, count, flag, words } from '../../src/remedies/reading/params.ts';
import { isReleaseAtLeast, isTorchAtLeast, releaseOf, sinceNote } from '../../src/remedies/reading/versions.ts';
import { applyLineEdit } from '../../src/source/line-edit.ts';
import { repository } from './repository.ts';

describe('versions', () => {
  test.each([
    ['2.7.1.post8', '26.1.0'],
    ['2.1.0.post8+git1a2b3c', '6.0.rc3'],
    ['7.3.0', '7.3.0'],
    ['2.1.0.post8.dev20240101', null],
    ['99.9', null],
  ])('package %s belongs to release %s', (torchNpu, release) => {
    expect(releaseOf(torchNpu)).toBe(release);
  });

  test('releases are ordered by history, not by text: 26 follows 7.3, rc3 precedes 6.0.0', () => {
    expect(isReleaseAtLeast('26.0.0', '7.3.0')).toBe(true);
    expect(isReleaseAtLeast('6.0.rc3', '6.0.0')).toBe(false);
    expect(isReleaseAtLeast(null, '6.0.0')).toBeNull();
  });

  test('a release that is there needs no note, an unknown one is told, an older one gets no advice', () => {
    expect(sinceNote('7.3.0', '7.3.0')!.en).toBe('');
    expect(sinceNote(null, '7.3.0')).toEqual({ en: ' (torch_npu 7.3.0 or newer)', zh: '（torch_npu 7.3.0 及以上）' });
    expect(sinceNote('7.2.0', '7.3.0')).toBeNull();
  });

  test('torch 2.10 is newer than 2.7', () => {
    expect(isTorchAtLeast('2.10.0+cpu', 2, 7)).toBe(true);
    expect(isTorchAtLeast('2.6.0', 2, 7)).toBe(false);
    expect(isTorchAtLeast('1.11.0', 2, 7)).toBe(false);
    expect(isTorchAtLeast('unknown', 2, 7)).toBeNull();
  });
});

test('params of a rule are read by type, and anything else is null', () => {
  const params = { a: 'single', b: 4, c: true, d: 0, e: 'x, y,,z', f: 2.5, g: null };
  expect([choice(params, 'a', ['single', 'multi']), choice(params, 'b', ['single']), choice(params, 'none', ['single'])]).toEqual([
    'single',
    null,
    null,
  ]);
  expect([count(params, 'b'), count(params, 'd'), count(params, 'f'), count(params, 'a')]).toEqual([4, null, null, null]);
  expect([flag(params, 'c'), flag(params, 'd'), flag(params, 'g')]).toEqual([true, null, null]);
  expect([words(params, 'e'), words(params, 'b'), words(params, 'e', 1)]).toEqual([['x', 'y', 'z'], [], ['x']]);
});

describe('settings in launch scripts', () => {
  const found = (path: string, line: string) =>
    settingsOf(repository({ [path]: `${line}\n` }), 'TASK_QUEUE_ENABLE').map(({ value }) => value);

  test.each([
    ['run.sh', 'export TASK_QUEUE_ENABLE=0', '0'],
    ['run.sh', 'TASK_QUEUE_ENABLE=1 torchrun train.py', '1'],
    ['run.sh', 'export TASK_QUEUE_ENABLE="2"', '2'],
    ['Dockerfile', 'ENV TASK_QUEUE_ENABLE=0', '0'],
    ['.github/workflows/ci.yml', '  TASK_QUEUE_ENABLE: "1"', '1'],
    ['train.py', "os.environ['TASK_QUEUE_ENABLE'] = '0'", '0'],
    ['train.py', 'os.environ.setdefault("TASK_QUEUE_ENABLE", "0")', '0'],
  ])('%s: %s', (path, line, value) => {
    const tree = repository({ [path]: `${line}\n` });
    const [setting] = settingsOf(tree, 'TASK_QUEUE_ENABLE');
    expect(setting!.value).toBe(value);
    expect(applyLineEdit(`${line}\n`, withValue(setting!, '9'))).toBe(
      `${line.replace(/[012](?=[^\d]*$)/, '9')}\n`.replace('TASK_QUEUE_ENABLE=1 torchrun', 'TASK_QUEUE_ENABLE=9 torchrun'),
    );
  });

  test.each([
    ['a comment', 'run.sh', '# export TASK_QUEUE_ENABLE=0'],
    ['a comment after code', 'run.sh', 'torchrun a.py  # TASK_QUEUE_ENABLE=0'],
    ['a read with a default', 'train.py', 'os.environ.get("TASK_QUEUE_ENABLE", "0")'],
    ['a comparison', 'train.py', 'if os.environ["TASK_QUEUE_ENABLE"] == "0": pass'],
    ['another variable', 'run.sh', 'export MY_TASK_QUEUE_ENABLED=0'],
    ['a value from elsewhere', 'run.sh', 'export TASK_QUEUE_ENABLE=$QUEUE'],
    ['a debug script', 'scripts/debug.sh', 'export TASK_QUEUE_ENABLE=0'],
    ['a line that says debug', 'run.sh', 'export TASK_QUEUE_ENABLE=0  # debug only'],
    ['a test', 'tests/run.sh', 'export TASK_QUEUE_ENABLE=0'],
  ])('%s is none', (_, path, line) => {
    expect(found(path, line)).toEqual([]);
  });
});

test('names are split into words in snake and camel case', () => {
  expect(wordsOf('ModelEMAV2')).toEqual(['model', 'emav']);
  expect(wordsOf('ModelEmaV2')).toEqual(['model', 'ema', 'v']);
  expect(wordsOf('_momentum_update_key')).toEqual(['momentum', 'update', 'key']);
  expect(wordsOf('schemaQueue')).toEqual(['schema', 'queue']);
});
