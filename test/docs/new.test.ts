/* `npm run new`: what it refuses, and that what it writes is code. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { afterAll, describe, expect, test } from 'vitest';
import { filesOf, type Kind, refusalOf, writeUnit } from '../../scripts/new.ts';

const ROOT = join(import.meta.dirname, '../..');
const KINDS: readonly Kind[] = ['rule', 'remedy', 'importer'];
const ID = 'never-a-unit';

const temp = mkdtempSync(join(tmpdir(), 'npu-advisor-new-'));
afterAll(() => rmSync(temp, { recursive: true, force: true }));

describe('refuses', () => {
  test.each([
    ['rule', 'Slow-Link', /no id/],
    ['rule', 'slow_link', /no id/],
    ['rule', '../slow', /no id/],
    ['rule', 'a--b', /no id/],
    ['rule', '2-slow', /no id/],
    ['rule', '', /no id/],
    ['rule', `a-${'b'.repeat(40)}`, /longer than 40/],
    ['rule', 'delete', /word of the language/],
    ['rule', 'slow-link', /src\/rules has "slow-link" already/],
    ['rule', 'index', /already/],
    ['remedy', 'gc-tuning', /src\/remedies has "gc-tuning" already/],
    ['remedy', 'reading', /already/],
    ['importer', 'ascend-db', /already/],
    ['importer', 'scan-csv', /already/],
    ['view', 'anything', /one of: rule, remedy, importer/],
  ])('%s %s', (kind, id, why) => {
    expect(refusalOf(ROOT, kind, id)).toMatch(why);
  });

  test('a name whose test is there already', () => {
    mkdirSync(join(temp, 'taken/test/rules'), { recursive: true });
    writeFileSync(join(temp, 'taken/test/rules/new-one.test.ts'), '');
    expect(() => writeUnit(join(temp, 'taken'), 'rule', 'new-one')).toThrow(/test\/rules\/new-one\.test\.ts is there already/);
  });
});

test('writes the unit once, and says what is next', () => {
  for (const kind of KINDS) {
    expect(refusalOf(ROOT, kind, ID)).toBeNull();
    const { written, next } = writeUnit(temp, kind, ID);
    for (const path of written) expect(readFileSync(join(temp, path), 'utf8')).toMatch(/TODO/);
    expect(written.at(-1)).toMatch(/^test\/.*\.test\.ts$/);
    expect(next.length).toBeGreaterThan(1);
    expect(() => writeUnit(temp, kind, ID)).toThrow(/already/);
  }
});

test('its tests hold quiet and loud cases, some of which fail until it is filled in', () => {
  for (const kind of KINDS) {
    const [, text] = Object.entries(filesOf(kind, ID)).at(-1)!;
    expect(text).toMatch(/describe\('quiet'/);
    expect(text).toMatch(/describe\('loud'/);
  }
});

test('what it writes has no type error', () => {
  const written = new Map(
    KINDS.flatMap((kind) => Object.entries(filesOf(kind, ID))).map(([path, text]) => [join(ROOT, path), text] as const),
  );
  const files = [...written.keys()].filter((path) => path.endsWith('.ts'));
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files }, ts.sys, ROOT);
  const { tsBuildInfoFile: _, ...rest } = options;
  const lean: ts.CompilerOptions = { ...rest, incremental: false };
  const host = ts.createCompilerHost(lean);
  const { fileExists, readFile, getSourceFile, directoryExists } = host;
  host.directoryExists = (path) => path.endsWith(ID) || directoryExists!(path);
  host.fileExists = (path) => written.has(path) || fileExists(path);
  host.readFile = (path) => written.get(path) ?? readFile(path);
  host.getSourceFile = (path, target, ...rest) =>
    written.has(path) ? ts.createSourceFile(path, written.get(path)!, target) : getSourceFile(path, target, ...rest);
  const program = ts.createProgram(files, lean, host);
  const errors = files.flatMap((path) => {
    const file = program.getSourceFile(path)!;
    return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
  });
  expect(errors.map((e) => `${e.file?.fileName}: ${ts.flattenDiagnosticMessageText(e.messageText, '\n')}`)).toEqual([]);
});
