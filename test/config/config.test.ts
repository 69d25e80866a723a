import { describe, expect, it } from 'vitest';
import { matchesAny, matchesGlob } from '../../src/config/glob.ts';
import { parseConfig } from '../../src/config/parse.ts';
import { resolveConfig } from '../../src/config/resolve.ts';
import { CONFIG_PATH, DEFAULT_ARTIFACTS, DEFAULT_CONFIG } from '../../src/config/schema.ts';

const FILE = CONFIG_PATH;

function problems(text: string, catalog?: Map<string, string[]>) {
  const parsed = parseConfig(text, FILE, catalog);
  if (parsed.ok) throw new Error('expected a problem');
  return parsed.problems.map((problem) => `${problem.line}: ${problem.message}`);
}

describe('settings', () => {
  it('are the defaults when the file is empty', () => {
    for (const text of ['', '# nothing\n', '{}']) expect(parseConfig(text, FILE)).toEqual({ ok: true, value: DEFAULT_CONFIG });
    expect(DEFAULT_CONFIG).toMatchObject({ lang: 'en', comment: 'on-findings', suggestions: 'auto', on_missing: 'neutral', gate: null });
  });

  it('are read key by key', () => {
    const text =
      'lang: zh\nartifacts: [prof-*]\ngate:\n  severity: high\n  total_saving: { share: 0.05 }\nthresholds:\n  small-op-fragmentation: { minShare: 0.1 }\n';
    expect(parseConfig(text, FILE)).toMatchObject({
      ok: true,
      value: { lang: 'zh', artifacts: ['prof-*'], gate: { severity: 'high', total_saving: { share: 0.05 } }, comment: 'on-findings' },
    });
  });

  it('name the line and the nearest key of an unknown key', () => {
    expect(problems('lang: en\ncoment: always\n')).toEqual(['2: unknown key `coment`, did you mean `comment`?']);
    expect(problems('gate:\n  regression: { shar: 0.05 }\n')).toContain('2: unknown key `shar`, did you mean `share`?');
    expect(problems('gate:\n  regression: {}\n').join()).toMatch(/needs ms or share/);
    expect(problems('job:\n  global_batch_sise: 8\n')).toContain('2: unknown key `global_batch_sise`, did you mean `global_batch_size`?');
    expect(problems('gate:\n  sevrity: high\n')).toContain('2: unknown key `sevrity`, did you mean `severity`?');
  });

  it('name the line of a wrong value', () => {
    expect(problems('lang: en\n\ncomment: sometimes\n')[0]).toMatch(/^3: `comment`: /);
    expect(problems('thresholds:\n  dataloader-stall:\n    minShare: a lot\n')[0]).toMatch(/^3: /);
  });

  it('name the line of broken YAML and of a doubled key', () => {
    expect(problems('lang: en\nartifacts: [a\n')[0]).toMatch(/^[23]: not valid YAML/);
    expect(problems('lang: en\nlang: zh\n')[0]).toMatch(/^2: not valid YAML/);
  });

  it('refuse rules and options that do not exist', () => {
    const catalog = new Map([['dataloader-stall', ['minShare']]]);
    expect(problems('disabled_rules:\n  - dataloader-stal\n', catalog)).toEqual([
      '2: unknown rule `dataloader-stal`, did you mean `dataloader-stall`?',
    ]);
    expect(problems('thresholds:\n  dataloader-stall:\n    minShar: 1\n', catalog)).toEqual([
      '3: unknown option of dataloader-stall `minShar`, did you mean `minShare`?',
    ]);
  });

  it('are bounded in size and in aliases', () => {
    expect(problems(`# ${'x'.repeat(70_000)}`)).toEqual(['null: larger than 64 KiB']);
    const bomb = [
      'a: &a [x,x,x,x,x,x,x,x,x]',
      ...'bcdefgh'.split('').map((c, i) => `${c}: &${c} [${Array(9).fill(`*${'abcdefgh'[i]}`)}]`),
    ].join('\n');
    expect(problems(bomb)[0]).toMatch(/not valid YAML/);
  });

  it('refuse text that is not a mapping', () => {
    expect(problems('just words')[0]).toMatch(/file/);
    expect(problems('__proto__: { lang: zh }')[0]).toMatch(/unknown key/);
  });
});

describe('resolving settings', () => {
  const files = (map: Record<string, string>) => async (owner: string, repo: string, path: string, ref: string | null) =>
    map[`${owner}/${repo}:${path}@${ref ?? 'default'}`] ?? null;
  const base = { owner: 'acme', repo: 'train', ref: 'basesha' };

  it('reads the base ref and nothing else', async () => {
    const read = files({ [`acme/train:${FILE}@basesha`]: 'lang: zh', [`acme/train:${FILE}@headsha`]: 'lang: en' });
    expect(await resolveConfig(read, base)).toMatchObject({ ok: true, value: { lang: 'zh' } });
  });

  it("falls back to the owner's .github repository, then to the defaults", async () => {
    expect(await resolveConfig(files({ [`acme/.github:${FILE}@default`]: 'lang: zh' }), base)).toMatchObject({ value: { lang: 'zh' } });
    expect(await resolveConfig(files({}), base)).toEqual({ ok: true, value: DEFAULT_CONFIG });
  });

  it('lays a file over the one it extends', async () => {
    const read = files({
      [`acme/train:${FILE}@basesha`]: '_extends: shared\nlang: zh',
      [`acme/shared:${FILE}@default`]: 'lang: en\ncomment: always',
    });
    const resolved = await resolveConfig(read, base);
    expect(resolved).toMatchObject({ ok: true, value: { lang: 'zh', comment: 'always', artifacts: DEFAULT_ARTIFACTS } });
  });

  it('never leaves the owner, never loops, never guesses a missing file', async () => {
    const path = `acme/train:${FILE}@basesha`;
    expect(await resolveConfig(files({ [path]: '_extends: evil/repo' }), base)).toMatchObject({ ok: false });
    expect(await resolveConfig(files({ [path]: '_extends: train' }), base)).toMatchObject({ ok: false });
    expect(await resolveConfig(files({ [path]: '_extends: gone' }), base)).toMatchObject({ ok: false });
  });
});

describe('artifact name patterns', () => {
  it('match with * and ?', () => {
    expect(matchesGlob('npu-profile*', 'npu-profile-rank0')).toBe(true);
    expect(matchesGlob('*ascend_pt*', 'host_123_ascend_pt')).toBe(true);
    expect(matchesGlob('a?c', 'abc')).toBe(true);
    expect(matchesGlob('a?c', 'ac')).toBe(false);
    expect(matchesGlob('*', '')).toBe(true);
    expect(matchesAny(DEFAULT_ARTIFACTS, 'logs')).toBe(false);
  });

  it('stay fast on hostile patterns', () => {
    const started = performance.now();
    matchesGlob('*a'.repeat(90), 'a'.repeat(2000));
    matchesGlob(`${'*a'.repeat(90)}b`, 'a'.repeat(2000));
    expect(performance.now() - started).toBeLessThan(200);
  });
});
