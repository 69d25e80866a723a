import { execFile, execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { simulate, writeProfiles } from '../../lab/simulator/index.ts';
import { Report } from '../../src/model/report.ts';
import { RULES } from '../../src/rules/index.ts';
import { zipOf } from '../support/archives.ts';

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

interface Run {
  code: number;
  out: string;
  err: string;
}

function cli(...args: string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { maxBuffer: 64 << 20 }, (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err });
    });
  });
}

let root = '';
let job = '';
let base = '';
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'npu-advisor-cli-'));
  job = join(root, 'job');
  base = join(root, 'base');
  await writeProfiles(simulate({ ranks: 2, seed: 8, faults: [{ kind: 'layout', off: true }] }), base);
  await writeProfiles(simulate({ ranks: 2, faults: [{ kind: 'layout' }] }), job);
});
afterAll(async () => {
  await rm(root, { recursive: true, force: true });
});

async function config(text: string): Promise<string> {
  const file = join(root, 'npu-advisor.yml');
  await writeFile(file, text);
  return file;
}

function expectUnusable(run: Run): void {
  expect(run.code).toBe(2);
  expect(run.out).toBe('');
  const lines = run.err.trimEnd().split('\n');
  expect(lines, run.err).toHaveLength(1);
  expect(lines[0]).toMatch(/^npu-advise: \S/);
  expect(run.err).not.toMatch(/\n\s+at /);
}

describe('analyze', () => {
  test('text is the default, colourless in a pipe, and nothing goes to stderr', async () => {
    const run = await cli('analyze', job);
    expect(run.code).toBe(0);
    expect(run.err).toBe('');
    expect(run.out).toMatch(/layout conversions/);
    expect(run.out).not.toContain('\u001b');
  });

  test('json keeps the schema and is the same twice', async () => {
    const [a, b] = [await cli('analyze', job, '--format', 'json'), await cli('analyze', job, '--format', 'json')];
    expect(a.out).toBe(b.out);
    expect(Report.safeParse(JSON.parse(a.out)).success).toBe(true);
  });

  test('Markdown, Chinese, and a file instead of stdout', async () => {
    const file = join(root, 'report.md');
    const run = await cli('analyze', job, '--format', 'md', '--lang', 'zh', '--out', file);
    expect(run).toMatchObject({ code: 0, out: '' });
    expect(await readFile(file, 'utf8')).toMatch(/[\u4e00-\u9fff]/);
  });

  test.each<[string, string, number]>([
    ['a gate that the job passes', 'gate:\n  total_saving:\n    ms: 10000\n', 0],
    ['a gate that the job fails', 'gate:\n  severity: medium\n', 1],
    ['a gate on the share of the step', 'gate:\n  total_saving:\n    share: 0.01\n', 1],
    ['a failing gate whose cause is switched off', 'gate:\n  severity: medium\ndisabled_rules: [transpose-hotspot]\n', 0],
  ])('%s decides the exit code', async (_, text, code) => {
    const run = await cli('analyze', job, '--config', await config(text), '--format', 'json');
    expect(run.code).toBe(code);
    expect(run.err).toBe('');
    expect((JSON.parse(run.out) as Report).gate!.outcome).toBe(code === 0 ? 'pass' : 'fail');
  });

  test('the language of the configuration holds unless the command line says otherwise', async () => {
    const file = await config('lang: zh\n');
    expect((JSON.parse((await cli('analyze', job, '--config', file, '--format', 'json')).out) as Report).lang).toBe('zh');
    expect((JSON.parse((await cli('analyze', job, '--config', file, '--lang', 'en', '--format', 'json')).out) as Report).lang).toBe('en');
  });
});

describe('analyze --baseline', () => {
  test('says what changed; the gate on it decides the exit code', async () => {
    const strict = await config('gate:\n  regression:\n    share: 0.02\njob:\n  global_batch_size: 32\n');
    const slower = await cli('analyze', job, '--baseline', base, '--config', strict);
    expect(slower).toMatchObject({ code: 1, err: '' });
    expect(slower.out).toMatch(/^Gate failed, each step is [\d.]+ ms slower than in the baseline/);
    expect(slower.out).toMatch(/Compared with the baseline `base`/);
    expect(slower.out).toMatch(/Samples per second: [\d,.]+ → [\d,.]+ \(−/);
    const faster = await cli('analyze', base, '--baseline', job, '--config', strict, '--lang', 'zh');
    expect(faster.code).toBe(0);
    expect(faster.out).toMatch(/每个迭代比基线快/);
  });

  test('takes a digest, and repeats', async () => {
    const facts = join(root, 'base.json');
    expect((await cli('digest', base, '--out', facts)).code).toBe(0);
    const run = await cli('analyze', job, '--baseline', base, '--baseline', facts, '--format', 'json');
    const report = Report.parse(JSON.parse(run.out));
    expect(report.comparison).toMatchObject({
      verdict: 'regression',
      spreadMs: 0,
      baseline: { runs: [{ label: 'base' }, { label: 'base.json' }] },
    });
  });

  test('that cannot be read ends with 2 and names it', async () => {
    expectUnusable(await cli('analyze', job, '--baseline', join(root, 'nothing')));
    const empty = join(root, 'empty');
    await mkdir(empty, { recursive: true });
    const run = await cli('analyze', job, '--baseline', empty);
    expectUnusable(run);
    expect(run.err).toMatch(/baseline empty/);
  });
});

describe('patch', () => {
  test('one diff that git takes, the same as in the report', async () => {
    const source = join(root, 'repository');
    await mkdir(source, { recursive: true });
    const text = 'import torch\nimport torch_npu\n\ntorch.npu.config.allow_internal_format = True\n';
    await writeFile(join(source, 'model.py'), text);
    const [patch, markdown] = await Promise.all([
      cli('patch', job, '--source', source),
      cli('analyze', job, '--source', source, '--format', 'md'),
    ]);
    expect(patch).toMatchObject({ code: 0, err: '' });
    const diff = patch.out.slice(patch.out.indexOf('diff --git'));
    expect(patch.out).toMatch(/^# model\.py:4: Keep one layout between operators\n# {3}- /);
    expect(markdown.out).toContain(diff);
    execFileSync('git', ['-c', 'core.autocrlf=false', 'apply', '-'], { cwd: source, input: patch.out });
    expect(await readFile(join(source, 'model.py'), 'utf8')).toBe(text.replace('True', 'False'));
  });

  test('needs a source', async () => {
    expectUnusable(await cli('patch', job));
  });
});

describe('what cannot be used ends with 2 and one line that says why', () => {
  test.each<[string, string[]]>([
    ['no command', []],
    ['an unknown command', ['analyse', 'x']],
    ['no path', ['analyze']],
    ['an unknown option', ['analyze', '.', '--colour']],
    ['an unknown format', ['analyze', '.', '--format', 'yaml']],
    ['an unknown language', ['analyze', '.', '--lang', 'fr']],
    ['a path that does not exist', ['analyze', '/no/such/place']],
    ['a configuration that does not exist', ['analyze', '.', '--config', '/no/such.yml']],
    ['an unknown rule', ['explain', 'dataloader-stal']],
    ['an unknown format of the list', ['rules', '--format', 'xml']],
  ])('%s', async (_, args) => {
    const run = await cli(...args);
    if (args.length === 0) {
      // The bare command shows its help.
      expect(run.code).toBe(2);
      return;
    }
    expectUnusable(run);
  });

  test('a folder without a profile', async () => {
    const dir = join(root, 'nothing');
    await mkdir(dir, { recursive: true });
    await writeFile(join(dir, 'readme.txt'), 'hello');
    expectUnusable(await cli('analyze', dir));
  });

  test('a corrupt zip and a zip with ../ names', async () => {
    const bad = join(root, 'bad.zip');
    await writeFile(bad, 'PK\x03\x04 and then nothing');
    expectUnusable(await cli('analyze', bad));
    await writeFile(bad, zipOf([{ name: '../trace_view.json', data: '[]' }]));
    const run = await cli('analyze', bad);
    expectUnusable(run);
    expect(run.err).toMatch(/bad\.zip/);
  });

  test('a configuration with a mistake names file and line', async () => {
    const run = await cli('analyze', job, '--config', await config('lang: en\ngate:\n  severty: high\n'));
    expectUnusable(run);
    expect(run.err).toMatch(/npu-advisor\.yml:\d+/);
  });

  test('a report that cannot be written', async () => {
    expectUnusable(await cli('analyze', job, '--out', join(root, 'no', 'such', 'folder.json')));
  });
});

describe('the other commands', () => {
  test('rules lists every check, explain tells its thresholds', async () => {
    const list = await cli('rules', '--format', 'json');
    expect((JSON.parse(list.out) as { id: string }[]).map((r) => r.id)).toEqual(RULES.map((r) => r.id));
    expect((await cli('rules', '--lang', 'zh')).out).toMatch(/[\u4e00-\u9fff]/);
    const explained = await cli('explain', 'dataloader-stall');
    expect(explained.code).toBe(0);
    expect(explained.out).toMatch(/minShare/);
  });

  test('explain names the nearest rule', async () => {
    expect((await cli('explain', 'dataloader-stal')).err).toMatch(/dataloader-stall/);
  });

  test('config validate says valid or what is wrong', async () => {
    expect(await cli('config', 'validate', await config('lang: zh\n'))).toMatchObject({ code: 0, err: '' });
    expectUnusable(await cli('config', 'validate', await config('langue: zh\n')));
  });

  test('help and version end with 0', async () => {
    expect((await cli('--help')).code).toBe(0);
    expect((await cli('--version')).out).toMatch(/^\d+\.\d+\.\d+/);
  });
});
