import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { validateConfig } from '../../src/cli/load-config.ts';

const root = mkdtempSync(join(tmpdir(), 'npu-advisor-config-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
function file(text: string): string {
  const path = join(root, `${++count}.yml`);
  writeFileSync(path, text);
  return path;
}

describe('config validate', () => {
  it('says that files are valid, alone and together', async () => {
    const [own, shared] = [file('_extends: shared\nlang: zh\n'), file('thresholds: { gc-pause: { minMs: 3 } }\n')];
    expect(await validateConfig([shared], { format: 'text', lang: 'en' })).toEqual({ out: `${shared} is valid\n`, code: 0 });
    expect((await validateConfig([own, shared], { format: 'text', lang: 'en' })).out).toBe(`${own} is valid together with ${shared}\n`);
    expect((await validateConfig([own], { format: 'text', lang: 'zh' })).out).toContain('未提供其继承的 shared，未检查');
    await expect(validateConfig([shared, own], { format: 'text', lang: 'en' })).rejects.toThrow(/has no `_extends`, so the files after it/);
  });

  it('names every mistake with file, line and column, in either language and as annotations', async () => {
    const [own, shared] = [file('_extends: x\ncoment: off\n'), file('lang: en\nthresholds:\n  gc-pauze: { minMs: 3 }\n')];
    const both = [own, shared];
    await expect(validateConfig(both, { format: 'text', lang: 'en' })).rejects.toThrow(
      `${own}:2:1: unknown key \`coment\`, did you mean \`comment\`?; ${shared}:3:3: unknown rule \`gc-pauze\`, did you mean \`gc-pause\`?`,
    );
    const { out, code } = await validateConfig(both, { format: 'github', lang: 'zh' });
    expect(code).toBe(2);
    expect(out.split('\n')[1]).toBe(`::error file=${shared},line=3,col=3,endColumn=10::未知的检查项 gc-pauze，是否想写 gc-pause？`);
    const json = await validateConfig([own], { format: 'json', lang: 'en' });
    expect(json.code).toBe(2);
    expect(JSON.parse(json.out)).toMatchObject({ valid: false, problems: [{ file: own, line: 2, column: 1, endColumn: 6 }] });
  });

  it('refuses what it cannot read', async () => {
    await expect(validateConfig([join(root, 'no.yml')], { format: 'text', lang: 'en' })).rejects.toThrow(/cannot be read/);
    await expect(validateConfig([file('{}')], { format: 'xml', lang: 'en' })).rejects.toThrow(/format "xml"/);
  });
});
