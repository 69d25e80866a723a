/**
 * The npm package as others get it: packs it, has it judged by publint and arethetypeswrong, installs it in a folder of its own and uses it
 * from another one. `npm run check:package`; needs the npm registry, takes about a minute.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';

const root = fileURLToPath(new URL('..', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'npu-advisor-package-'));
const problems: string[] = [];
/** The machine's own Node may be older than what the command needs. */
const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` };

function run(command: string, args: readonly string[], cwd: string): string {
  return execFileSync(command, [...args], { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 64 << 20 });
}

try {
  const [packed] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', work], root)) as {
    filename: string;
    size: number;
    files: unknown[];
  }[];
  const tarball = join(work, packed!.filename);
  const bytes = readFileSync(tarball);
  console.log(`${packed!.filename}: ${packed!.files.length} files, ${Math.round(packed!.size / 1024)} kB`);

  const { messages, pkg } = await publint({
    pack: { tarball: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) },
    strict: true,
  });
  // Where it is developed is not said in this repository.
  for (const message of messages)
    if (message.code !== 'LOCAL_DEPENDENCY') problems.push(`publint: ${formatMessage(message, pkg, { color: false })}`);

  const types = await checkPackage(createPackageFromTarballData(new Uint8Array(bytes)));
  if (!types.types) problems.push('arethetypeswrong: no types');
  else
    for (const problem of types.problems) {
      // An ES module: CommonJS takes it by import(), which is what this says.
      if (problem.kind === 'CJSResolvesToESM' || ('resolutionKind' in problem && problem.resolutionKind === 'node10')) continue;
      problems.push(`arethetypeswrong: ${JSON.stringify(problem)}`);
    }

  const user = join(work, 'user');
  const elsewhere = join(work, 'elsewhere');
  mkdirSync(user);
  mkdirSync(elsewhere);
  writeFileSync(join(user, 'package.json'), '{"private":true,"type":"module"}');
  run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error', tarball], user);
  const example = join(work, 'example');
  run(
    process.execPath,
    [join(root, 'lab/simulator/main.ts'), '--ranks', '2', '--steps', '3', '--fault', 'slow-loader', '--out', example],
    root,
  );
  const advise = (...args: string[]): string =>
    run(process.execPath, [join(user, 'node_modules/npu-advisor/bin/npu-advise.mjs'), ...args], elsewhere);
  const bin = run(join(user, 'node_modules/.bin/npu-advise'), ['--version'], elsewhere).trim();
  if (!/^\d+\.\d+\.\d+/.test(bin)) problems.push(`the command says ${bin} instead of its version`);
  if (!advise('--help').includes('Usage: npu-advise')) problems.push('--help shows no usage');
  for (const lang of ['en', 'zh'])
    if (advise('explain', 'dataloader-stall', '--lang', lang).length < 500) problems.push(`explain has no page in ${lang}`);
  for (const format of ['text', 'json', 'md', 'html', 'sarif']) {
    const out = advise('analyze', example, '--format', format);
    if (!out.includes('dataloader-stall') && format !== 'text') problems.push(`analyze --format ${format} finds nothing in the example`);
    if (format === 'text' && out.length < 300) problems.push('analyze says nothing about the example');
  }

  // Its types, as a program sees them.
  writeFileSync(
    join(user, 'use.ts'),
    `import { analyse, openSource, type Report } from 'npu-advisor';
const sources = [await openSource(process.argv[2]!)];
const options = { lang: 'en' as const, thresholds: {}, disabledRules: [], gate: null };
const report: Report = await analyse({ sources, options, source: null });
console.log(report.findings.map(({ rule }) => rule).join(' '));
`,
  );
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const flags = [
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    'false',
    '--module',
    'nodenext',
    '--target',
    'es2024',
    '--types',
    'node',
    '--typeRoots',
    join(root, 'node_modules/@types'),
  ];
  try {
    run(process.execPath, [compiler, ...flags, 'use.ts'], user);
  } catch (error) {
    problems.push(`a program that uses the types: ${(error as { stdout?: string }).stdout?.slice(0, 1500)}`);
  }
  if (!run(process.execPath, ['use.ts', example], user).includes('dataloader-stall'))
    problems.push('a program that imports it finds nothing');
} finally {
  rmSync(work, { recursive: true, force: true });
}
for (const problem of problems) console.error(problem);
console.log(problems.length === 0 ? 'the package is in order' : `${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
