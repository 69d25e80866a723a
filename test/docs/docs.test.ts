/*
 * The documentation is true: its commands run, its settings validate, its links lead somewhere, and the names in it exist.
 * Commands run in this process, in a folder that has what they name.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { parseAllDocuments, parse as parseYaml } from 'yaml';
import { readOptions } from '../../lab/demo/options.ts';
import { zipFolder } from '../../lab/demo/zip-folder.ts';
import { simulate, writeProfiles } from '../../lab/simulator/index.ts';
import { refusalOf } from '../../scripts/new.ts';
import { INPUTS } from '../../src/app/action/inputs.ts';
import { VARIABLES } from '../../src/app/env.ts';
import { parseCommands } from '../../src/commands/parse.ts';
import { findCommand } from '../../src/commands/table.ts';
import { parseConfig } from '../../src/config/parse.ts';
import { ConfigSchema } from '../../src/config/schema.ts';
import { ALLOWED } from '../../src/remedies/allow-list.ts';
import { REMEDIES } from '../../src/remedies/index.ts';
import { RULES } from '../../src/rules/index.ts';
import { parsePython } from '../../src/source/python-parser.ts';
import { commandsOf, PAGES, ROOT, type Shell } from './markdown.ts';

const SHELLS = ['sh', 'bash', 'shell', 'console'];
const shells = PAGES.flatMap((page) => page.blocks.filter((block) => SHELLS.includes(block.lang)).flatMap(commandsOf));
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  name: string;
  bin: object;
  scripts: Record<string, string>;
};
const { scripts } = manifest;
/** The program by its name and, outside of a clone, by that of its package: `npx npu-advisor`. */
const OURS = [...Object.keys(manifest.bin), manifest.name];
const CATALOG = new Map(RULES.map((rule) => [rule.id, Object.keys(rule.options)] as const));

/** Programs whose commands are not run here, and why. */
const NOT_RUN: Readonly<Record<string, string>> = {
  torchrun: 'needs NPUs',
  msprof: 'needs CANN',
  git: 'comes with the machine; clones need the network, and `git apply` is tested with the patches (test/render/patch.test.ts)',
  cd: 'goes with the commands around it',
  cp: 'copies a file; whether it is there is looked up',
  export: 'sets a variable; its name is looked up',
  docker: 'needs Docker and an image',
  helm: 'needs a cluster',
  kubectl: 'needs a cluster',
  curl: 'needs a running server or the network',
  source: 'needs CANN',
};

/** Subcommands that serve, talk to GitHub or read a store: their options are held against their help. */
const BY_HELP = ['serve', 'worker', 'doctor', 'setup', 'history', 'action', 'backup', 'restore'];

let home = '';
const before = { dir: process.cwd(), argv: process.argv, code: process.exitCode };

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'npu-advisor-docs-'));
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  };
  const profile = join(home, 'path/to/profiles');
  await writeProfiles(simulate({ ranks: 2, layers: 1, steps: 3, faults: [{ kind: 'slow-loader', single: true }] }), profile);
  for (const name of ['prof', 'new', 'old']) symlinkSync(profile, join(home, name));
  await zipFolder(profile, join(home, 'profiles.zip'));
  for (const name of ['train.py', 'path/to/repository/train.py']) {
    put(name, 'import torch\nimport torch_npu\nfrom torch_npu.amp import autocast\n');
  }
  put('.github/npu-advisor.yml', 'lang: en\n');
  process.chdir(home);
});

afterAll(() => {
  process.chdir(before.dir);
  process.argv = before.argv;
  process.exitCode = before.code;
  rmSync(home, { recursive: true, force: true });
});

let runs = 0;

/** Runs a program of ours as it stands, in this process. */
async function run(main: string, args: readonly string[]): Promise<{ out: string; code: unknown }> {
  let out = '';
  const keep = (text: unknown): boolean => {
    out += String(text);
    return true;
  };
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation(keep),
    vi.spyOn(process.stderr, 'write').mockImplementation(keep),
    vi.spyOn(console, 'log').mockImplementation(keep),
  ];
  process.argv = [process.execPath, main, ...args];
  process.exitCode = 0;
  try {
    // A module runs once: under another address it is another one.
    await import(`${join(ROOT, main)}?run=${runs++}`);
    return { out, code: process.exitCode };
  } finally {
    for (const spy of spies) spy.mockRestore();
    process.exitCode = 0;
  }
}

const isThere = (path: string): boolean => existsSync(join(ROOT, path));

async function checkAdvise(args: readonly string[]): Promise<void> {
  if (BY_HELP.includes(args[0]!)) {
    const isOption = (word: string): boolean => word.startsWith('-');
    const names = args.slice(0, args[0] === 'history' ? 2 : 1);
    const { out } = await run('src/cli/main.ts', [...names, '--help']);
    expect(out).toMatch(new RegExp(`Usage: npu-advise ${names.join(' ')}`));
    for (const option of args.filter(isOption)) expect(out).toContain(option.split('=')[0]);
    return;
  }
  const { out, code } = await run('src/cli/main.ts', args);
  expect([args.join(' '), code, code === 0 ? '' : out]).toEqual([args.join(' '), 0, '']);
}

async function checkNode(args: readonly string[]): Promise<void> {
  if (args[0] === '-p' || args[0] === '-e') {
    execFileSync(process.execPath, args, { cwd: home, stdio: 'ignore' });
    return;
  }
  expect(isThere(args[0]!), args[0]).toBe(true);
  if (args[0] !== 'lab/simulator/main.ts' || args.includes('DIR')) return;
  // The same job, smaller: what is looked at are the options.
  const small = args.slice(1).map((word, i, all) => (all[i - 1] === '--ranks' ? '2' : all[i - 1] === '--out' ? 'simulated' : word));
  const { out, code } = await run(args[0], [...small, '--layers', '1', '--steps', '2']);
  expect([code, out]).toEqual([0, expect.stringMatching(/true saving/)]);
}

function checkNpm([verb, name, ...rest]: readonly string[]): void {
  if (verb === 'ci' || verb === 'install') return;
  if (verb !== 'run') {
    expect(Object.keys(scripts)).toContain(verb);
    return;
  }
  expect(Object.keys(scripts)).toContain(name);
  const args = rest[0] === '--' ? rest.slice(1) : rest;
  if (name === 'demo')
    readOptions(
      args.map((word) => (word === 'PATH' ? 'prof' : word)),
      {},
    );
  else if (name === 'new') expect(refusalOf(ROOT, args[0]!, args[1] ?? '')).toBeNull();
  const main = scripts[name!]!.split(' ').at(-1)!;
  const options = args.filter((word) => word.startsWith('--'));
  if (main.endsWith('.ts')) for (const option of options) expect(readFileSync(join(ROOT, main), 'utf8')).toContain(option.slice(2));
}

async function check({ words, env }: Shell): Promise<void> {
  const [program = '', ...args] = words;
  for (const name of Object.keys(env)) expect(isVariable(name), name).toBe(true);
  if (program === 'npx') return check({ words: args, env: {}, at: '', text: '' });
  if (OURS.includes(program)) return checkAdvise(args);
  if (program === 'npm') return checkNpm(args);
  if (program === 'node') return checkNode(args);
  if (program === 'vitest') return void expect(isThere(args.at(-1)!)).toBe(true);
  if (program === 'bash') return void execFileSync('bash', ['-n', join(ROOT, args[0]!)]);
  expect(Object.keys(NOT_RUN), program).toContain(program);
  // Settings of one's own are made from the example.
  for (const path of args.filter((word) => /^(\.\/)?deploy\/(?!\.env$)/.test(word))) expect(isThere(path), path).toBe(true);
}

test('every command of every page runs, or is on the list of those that cannot', async () => {
  const unique = [...new Map(shells.map((shell) => [shell.text, shell])).values()];
  // What writes a file comes before what reads it.
  unique.sort((a, b) => Number(b.text.includes('--out')) - Number(a.text.includes('--out')));
  const failed: string[] = [];
  for (const shell of unique) {
    await check(shell).catch((error: unknown) =>
      failed.push(`${shell.at}: ${shell.text}\n${error instanceof Error ? error.message : error}`),
    );
  }
  expect(failed).toEqual([]);
  expect(unique.length).toBeGreaterThan(20);
});

const KEYS = Object.keys(ConfigSchema.shape);
const published = addFormats
  .default(new Ajv2020({ strict: false }))
  .compile(JSON.parse(readFileSync(join(ROOT, 'schema/config.schema.json'), 'utf8')));

/** Keys of the other YAML files that pages show: workflows and their steps, and files of the deployment. */
const OTHER = [
  'on',
  'jobs',
  'name',
  'uses',
  'with',
  'run',
  'if',
  'steps',
  'env',
  'services',
  'image',
  'replicas',
  'secret',
  'config',
  'ingress',
];

function isSettings(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const keys = Object.keys(value);
  return (
    keys.length > 0 &&
    keys.every((key) => KEYS.includes(key) || /^\w+$/.test(key)) &&
    keys.some((key) => KEYS.includes(key)) &&
    !keys.includes('on')
  );
}

function problemsOfSettings(text: string): unknown {
  const value: unknown = parseYaml(text);
  if (!published(value)) return published.errors;
  const parsed = parseConfig(text, 'npu-advisor.yml', CATALOG);
  return parsed.ok ? null : parsed;
}

describe('snippets', () => {
  test('of settings hold to the published schema, in blocks and in the text', () => {
    let seen = 0;
    for (const { blocks, codes } of PAGES) {
      for (const { at, lang, text } of blocks) {
        if (lang !== 'yaml' && lang !== 'yml') continue;
        const value: unknown = parseYaml(text);
        if (isSettings(value)) {
          seen++;
          expect([at, problemsOfSettings(text)]).toEqual([at, null]);
        }
      }
      for (const { at, text } of codes) {
        const key = /^(\w+): \S/.exec(text)?.[1];
        if (key === undefined || !KEYS.includes(key) || text.includes('…')) continue;
        seen++;
        expect([at, problemsOfSettings(text)]).toEqual([at, null]);
      }
    }
    expect(seen).toBeGreaterThan(10);
  });

  test('of other YAML are workflows or parts of them, and give the action inputs that it has', () => {
    const names = INPUTS.map((input) => input.name as string);
    for (const { at, lang, text } of PAGES.flatMap((page) => page.blocks)) {
      if (lang !== 'yaml' && lang !== 'yml') continue;
      const documents = parseAllDocuments(text);
      expect([at, documents.flatMap((document) => document.errors)]).toEqual([at, []]);
      const value: unknown = parseYaml(text) ?? {};
      if (isSettings(value)) continue;
      const parts = (Array.isArray(value) ? value : [value]) as Record<string, unknown>[];
      for (const part of parts) {
        const keys = Object.keys(part);
        expect([at, keys.filter((key) => !OTHER.includes(key))]).toEqual([at, []]);
        if (!String(part.uses ?? '').includes('npu-advisor')) continue;
        for (const input of Object.keys((part.with ?? {}) as object)) expect([at, names]).toEqual([at, expect.arrayContaining([input])]);
      }
    }
  });

  test('of JSON can be read', () => {
    for (const { at, lang, text } of PAGES.flatMap((page) => page.blocks)) {
      if (lang === 'json') expect(() => JSON.parse(text), at).not.toThrow();
    }
  });

  test('of Python are Python', () => {
    for (const { at, lang, text } of PAGES.flatMap((page) => page.blocks)) {
      if (lang !== 'python') continue;
      const { module, failure } = parsePython(at, text);
      expect([at, failure, module?.brokenLines]).toEqual([at, null, []]);
    }
  });

  test('of commands on a pull request are commands', () => {
    const said = PAGES.flatMap((page) => [
      ...page.codes,
      ...page.blocks.flatMap((block) => block.text.split('\n').map((text) => ({ ...block, text }))),
    ]);
    const ours = said.filter(({ text }) => text.startsWith('/npu-advise') && !text.includes('…'));
    for (const { at, text } of ours) {
      const [parsed] = parseCommands(text);
      expect([at, text, findCommand(parsed?.name ?? '') !== null]).toEqual([at, text, true]);
    }
    expect(ours.length).toBeGreaterThan(10);
  });
});

test('every relative link leads to a file that is there, and to a heading that it has', () => {
  const pages = new Map(PAGES.map((page) => [page.path, page]));
  const broken = PAGES.flatMap((page) =>
    page.links.flatMap(({ at, text }) => {
      if (/^[a-z]+:/i.test(text)) return [];
      const [path = '', anchor] = text.split('#');
      const target = path === '' ? page.path : normalize(join(dirname(page.path), path));
      if (!isThere(target)) return [`${at}: ${text}`];
      if (anchor === undefined) return [];
      return pages.get(target)?.anchors.has(anchor) === true ? [] : [`${at}: ${text} (no such heading)`];
    }),
  );
  expect(broken).toEqual([]);
});

test('every page of docs can be reached from the index', () => {
  const pages = new Map(PAGES.map((page) => [page.path, page]));
  const reached = new Set<string>();
  const visit = (path: string): void => {
    if (reached.has(path)) return;
    reached.add(path);
    for (const { text } of pages.get(path)?.links ?? []) {
      if (/^[a-z]+:/i.test(text) || text.startsWith('#')) continue;
      visit(normalize(join(dirname(path), text.split('#')[0]!)));
    }
  };
  visit('docs/README.md');
  expect(PAGES.map((page) => page.path).filter((path) => path.startsWith('docs/') && !reached.has(path))).toEqual([]);
});

/** Variables and constants of others that pages name. */
const FOREIGN = new Set([
  // of the example, or placeholders of it
  'DISTRIBUTED_ARGS',
  'MODEL_ARGS',
  'PROFILE_DIR',
  // of torch_npu, CANN and engines: /work of the profiler
  'ASCEND_PROFILER_OUTPUT',
  'PROF_CONFIG_PATH',
  'FRACTAL_NZ',
  'DT_BF16',
  'FULL_DECODE_ONLY',
  // what Node.js says of a certificate
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

const variables = new Set(VARIABLES.map((variable) => variable.name as string));

function isVariable(name: string): boolean {
  return variables.has(name) || ALLOWED.has(name) || FOREIGN.has(name) || /^PROF_\d/.test(name);
}

test('every environment variable that is named exists', () => {
  const unknown = PAGES.flatMap((page) =>
    [...page.text.matchAll(/(?<![\w/-])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?![\w])/g)].map((m) => m[0]).filter((name) => !isVariable(name)),
  );
  expect([...new Set(unknown)]).toEqual([]);
});

/** Words with a hyphen that are neither rule nor remedy. */
const WORDS = new Set([
  'npu-advise',
  'upload-artifact',
  'artifact-hosts',
  'on-findings',
  'on-request',
  'no-data',
  'call-stack',
  'comment-only',
  // A region of buckets.
  'us-east-1',
]);

test('every rule and remedy that is named exists, and both READMEs name every rule', () => {
  const known = new Set<string>([...RULES.map((rule) => rule.id), ...REMEDIES.keys(), ...WORDS, ...INPUTS.map((input) => input.name)]);
  // A list of packages.
  const pages = PAGES.filter((page) => page.path !== 'docs/licences.md');
  const unknown = pages.flatMap(({ codes }) => codes.filter(({ text }) => /^[a-z0-9]+(-[a-z0-9]+)+$/.test(text) && !known.has(text)));
  const options = new Set(RULES.flatMap((rule) => Object.keys(rule.options)));
  expect(unknown.filter(({ text }) => !options.has(text)).map(({ at, text }) => `${at}: ${text}`)).toEqual([]);
  for (const path of ['README.md', 'README.zh.md']) {
    const named = new Set(PAGES.find((page) => page.path === path)!.codes.map((code) => code.text));
    expect([path, RULES.map((rule) => rule.id).filter((id) => !named.has(id))]).toEqual([path, []]);
  }
});

test('every rule has an example, recorded or written, and nothing is left to fill in', () => {
  for (const { id } of RULES) {
    const page = PAGES.find(({ path }) => path === `docs/rules/${id}.md`)!;
    expect([id, page.anchors.has('example')]).toEqual([id, true]);
  }
  const open = PAGES.filter(({ path, text }) => !/^docs\/extend(\.zh)?\.md$/.test(path) && /\bTODO\b/.test(text)).map((page) => page.path);
  expect(open).toEqual([]);
});

const TRANSLATED = PAGES.map((page) => page.path).filter((path) => path.endsWith('.zh.md') && !path.startsWith('src/'));

test.each(TRANSLATED)('%s shows the same commands, code, rows and sections as the English page', (path) => {
  const of = (one: string) => {
    const { blocks, text, anchors } = PAGES.find((page) => page.path === one)!;
    return {
      commands: blocks
        .filter((block) => SHELLS.includes(block.lang))
        .flatMap((block) => commandsOf(block).map((shell) => shell.text.replaceAll(/ --lang zh| --lang en/g, ''))),
      blocks: blocks.map((block) => block.lang),
      rows: text.split('\n').filter((line) => line.startsWith('|')).length,
      sections: anchors.size,
    };
  };
  expect(of(path)).toEqual(of(path.replace('.zh.md', '.md')));
});

test('pictures are there and small enough for a page', () => {
  for (const { at, text } of PAGES.flatMap((page) =>
    page.links.filter((link) => /\.(png|svg|gif)$/.test(link.text)).map((link) => ({ ...link, at: page.path })),
  )) {
    const file = join(ROOT, dirname(at), text);
    expect(statSync(file).size, file).toBeLessThan(1_000_000);
  }
});
