import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { DEPRECATED, NON_EXISTENT, REMOVED } from '../../src/model/npu-names.ts';
import type { Advice, Remedy, RemedyContext } from '../../src/model/remedy.ts';
import type { Edit } from '../../src/model/report.ts';
import { ALLOWED, type AllowedName } from '../../src/remedies/allow-list.ts';
import { REMEDIES } from '../../src/remedies/index.ts';
import { isReleaseAtLeast } from '../../src/remedies/reading/versions.ts';
import { canonicalName, namesOf, resolveName } from '../../src/source/names.ts';
import { parsePython } from '../../src/source/python-parser.ts';
import { descend, partsOf, textOf } from '../../src/source/syntax-tree.ts';
import { situations } from './situations.ts';

/** A name as advice mentions it: an API by dotted name or by its last part, a keyword, or an environment variable. */
interface Mention {
  readonly kind: 'api' | 'member' | 'keyword' | 'environment';
  readonly name: string;
}

/** Words between backticks that name no API: files, operator types, Python itself, launcher flags, loader internals. */
const PLAIN = new Set([
  'True',
  'False',
  'trace_view.json',
  'DataLoader.__next__',
  '__getitem__',
  'import torch_npu',
  '--num-layers-per-virtual-pipeline-stage',
  'TransData',
  'Transpose',
  'AsStrided',
]);
/** Callables in the snippets that the reader's own code or Python provides. */
const OWN = new Set([
  'train_step',
  'int',
  'environ',
  'prepare',
  'compute_loss',
  'enumerate',
  'len',
  'range',
  'print',
  'get',
  'parameters',
  'read',
]);
const OWN_MODULES = ['os.', 'json.'];

const literalsOf = (text: string): string[] => [...text.matchAll(/`([^`]*)`/g)].map((match) => match[1]!);
const isPlain = (literal: string): boolean => PLAIN.has(literal) || /^[\w./-]+\.(py|sh|ya?ml)(:\d+)?$/.test(literal);

/** Names in prose: everything between backticks, and dotted names outside them. */
function mentionsInProse(text: string): Mention[] {
  const mentions: Mention[] = [];
  for (const match of text.matchAll(/\b(?:torch|torch_npu|contextlib|gc|apex)(?:\.\w+)+/g)) mentions.push({ kind: 'api', name: match[0] });
  for (const match of text.matchAll(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g)) mentions.push({ kind: 'environment', name: match[0] });
  for (const literal of literalsOf(text)) {
    if (isPlain(literal)) continue;
    for (const match of literal.matchAll(/(?<![\w.])([a-z_]\w*)=(?!=)/g)) mentions.push({ kind: 'keyword', name: match[1]! });
    for (const match of literal.matchAll(/([A-Za-z_]\w*)(?:\(| = )/g)) mentions.push({ kind: 'member', name: match[1]! });
    if (/^\.?[A-Za-z_]\w*$/.test(literal))
      mentions.push({ kind: /^[A-Z0-9]+_[A-Z0-9_]+$/.test(literal) ? 'environment' : 'member', name: literal.replace('.', '') });
  }
  return mentions;
}

/** Names in a snippet: Python through the parser and its imports, shell by its variables. */
function mentionsInCode(code: string): Mention[] {
  const comments = [...code.matchAll(/#.*$/gm)].flatMap((match) =>
    mentionsInProse(match[0].replaceAll(/(\.?[\w.]+\([^)]*\)|\w+=\w+|[\w]+_npu\b(?= ))/g, '`$1`').replaceAll('`torch_npu`', '')),
  );
  if (code.includes('export '))
    return [...comments, ...[...code.matchAll(/export (\w+)=/g)].map((match): Mention => ({ kind: 'environment', name: match[1]! }))];
  // A reader's script has these imports; the snippets show only what is new.
  const prelude = 'import torch\nfrom torch.utils.data import DataLoader\nfrom torch.nn.parallel import DistributedDataParallel\n';
  const { module } = parsePython('snippet.py', prelude + code);
  expect(module!.brokenLines, code).toEqual([]);
  const names = namesOf(module!);
  const mentions: Mention[] = [...comments];
  for (const node of descend(module!.root)) {
    if (node.start < prelude.length || node.parent?.kind === 'dotted_name') continue;
    if (node.kind === 'attribute' && node.parent?.kind !== 'attribute') {
      const [name] = resolveName(names, node).names;
      if (name !== undefined) mentions.push({ kind: 'api', name });
      else mentions.push({ kind: 'member', name: textOf(module!, partsOf(node)[1]!) });
    }
    if (node.kind === 'call' && node.children[0]!.kind === 'identifier') {
      const [name] = resolveName(names, node.children[0]!).names;
      mentions.push(name === undefined ? { kind: 'member', name: textOf(module!, node.children[0]!) } : { kind: 'api', name });
    }
    if (node.kind === 'keyword_argument') mentions.push({ kind: 'keyword', name: textOf(module!, partsOf(node)[0]!) });
  }
  return mentions;
}

/** What an edit adds; the reader's own code around it is not ours. */
function mentionsInEdit(edit: Edit): Mention[] {
  const words = (text: string): string[] => text.match(/[A-Za-z_][\w.]*\s*=(?!=)|[A-Za-z_][\w.]*/g) ?? [];
  const old = new Set(words(edit.before));
  return words(edit.after)
    .filter((word) => !old.has(word) && !['True', 'False', 'None', 'npu'].includes(word))
    .map((word): Mention => (word.endsWith('=') ? { kind: 'keyword', name: word.slice(0, -1) } : { kind: 'member', name: word }));
}

const lastPart = (name: string): string => name.replace(/\(.*$/, '').split('.').at(-1)!;

/** The entries of a list of names that a mention can mean. */
function matching(mention: Mention, names: readonly string[]): string[] {
  switch (mention.kind) {
    case 'api':
      return names.filter((name) => canonicalName(name) === canonicalName(mention.name) || name.startsWith(`${mention.name}.`));
    case 'environment':
      return names.filter((name) => name === mention.name);
    case 'keyword':
      return names.filter((name) => name === mention.name || name.endsWith(`(${mention.name})`));
    case 'member':
      return names.filter((name) => lastPart(name) === mention.name || name === mention.name || name.endsWith(`(${mention.name})`));
  }
}

const isOwn = ({ kind, name }: Mention): boolean =>
  (kind === 'member' && OWN.has(name)) || (kind === 'api' && OWN_MODULES.some((prefix) => name.startsWith(prefix)));

/** Situations differ less than they are many: each text is read once. */
const readBefore = new Map<string, readonly Mention[]>();

function once(text: string, read: (text: string) => readonly Mention[]): readonly Mention[] {
  const known = readBefore.get(text);
  if (known) return known;
  const mentions = read(text);
  readBefore.set(text, mentions);
  return mentions;
}

function mentionsOf(advice: Advice): Mention[] {
  const texts = [advice.title, advice.text, ...advice.preconditions].flatMap(({ en, zh }) => [en, zh]);
  const all = [
    ...texts.flatMap((text) => once(text, mentionsInProse)),
    ...(advice.code === null ? [] : once(advice.code, mentionsInCode)),
    ...advice.edits.flatMap(mentionsInEdit),
  ];
  const unique = new Map(all.filter((mention) => !isOwn(mention)).map((mention) => [`${mention.kind} ${mention.name}`, mention]));
  return [...unique.values()];
}

/** Every situation with what is advised there; the two tests read the same. */
let rendered:
  | readonly { readonly name: string; readonly remedy: Remedy; readonly context: RemedyContext; readonly advice: Advice }[]
  | null = null;

function allAdvice(): NonNullable<typeof rendered> {
  rendered ??= [...situations()].flatMap((situation) => {
    const advice = situation.remedy.advise({ rule: 'any', ranks: [1], locations: [], confidence: 'high' }, situation.context);
    return advice === null ? [] : [{ ...situation, advice }];
  });
  return rendered;
}

const matchesBefore = new Map<string, readonly string[]>();

/** The same mention of the same list is looked up once. */
function matchingOnce(mention: Mention, of: string, names: () => readonly string[]): readonly string[] {
  const key = `${of} ${mention.kind} ${mention.name}`;
  const known = matchesBefore.get(key) ?? matching(mention, names());
  matchesBefore.set(key, known);
  return known;
}

/** Why a name may be mentioned on hardware that its page does not list. */
const UNLISTED: readonly [pattern: RegExp, soc: string, why: string][] = [
  [/^torch_npu\.(profiler|npu\.mstx)\b/, '950', 'newer pages list it; the capture is the same on all products'],
  [/^torch_npu\.npu\.amp\b/, 'gen-1', 'its page lists the newer products; the first series has to use this scaler'],
  [
    /^torch_npu\.npu_fusion_attention\((atten_mask|keep_prob)\)$/,
    'gen-1',
    'the code calls it already; the text says what its argument means',
  ],
  [/^torch_npu\.npu_fusion_attention\((atten_mask|keep_prob)\)$/, 'A3', 'the same'],
  [/^torch_npu\.npu\.config\.allow_internal_format$/, '950', 'the text says to leave it off, which is all that is accepted'],
  [/^torch_npu\.npu\.set_compile_mode/, '950', 'the text says that only False is accepted'],
];

function isListed(entry: AllowedName, context: RemedyContext): boolean {
  const { soc } = context;
  if (soc === null || entry.hardware === null || entry.hardware.includes(soc)) return true;
  // Core torch and its torch.npu aliases are listed for the newer products only; gen-1 runs them as well.
  if (/^torch\./.test(entry.name)) return true;
  return UNLISTED.some(([pattern, unlisted]) => unlisted === soc && pattern.test(entry.name));
}

/** A release that is known to be older than the name. An unknown release is the text's business: it names the release. */
function isTooOld(entry: AllowedName, context: RemedyContext): boolean {
  return entry.since !== null && /^\d/.test(entry.since) && isReleaseAtLeast(context.torchNpu, entry.since) === false;
}

/** Everything that is ours: what an edit takes away is the author's own. */
function textOfAdvice(advice: Advice): string {
  return JSON.stringify({ ...advice, edits: advice.edits.map(({ after }) => after) });
}

describe('truth guard', () => {
  test('every name in every text, snippet and edit is allowed, declared, there on the hardware and in the release', () => {
    const wrong = new Set<string>();
    for (const { name, remedy, context, advice } of allAdvice()) {
      for (const mention of mentionsOf(advice)) {
        const entries = matchingOnce(mention, '', () => [...ALLOWED.keys()]).map((key) => ALLOWED.get(key)!);
        if (entries.length === 0) wrong.add(`${remedy.id}: ${mention.kind} ${mention.name} is not on the allow-list`);
        else if (matchingOnce(mention, remedy.id, () => remedy.apis).length === 0)
          wrong.add(`${remedy.id}: ${mention.kind} ${mention.name} is not declared in apis`);
        else if (!entries.some((entry) => isListed(entry, context))) wrong.add(`${name}: ${mention.name} is not listed for ${context.soc}`);
        else if (entries.every((entry) => isTooOld(entry, context))) wrong.add(`${name}: ${mention.name} came later`);
      }
    }
    expect([...wrong].slice(0, 20)).toEqual([]);
    expect(allAdvice().length).toBeGreaterThan(3_000);
  });

  test('no text, snippet or edit holds a name that never existed', () => {
    const names = NON_EXISTENT.map(({ name }) => name);
    // `torch_npu.npu.amp` holds `npu.amp`, never `torch_npu.amp`; a bare prefix of a longer true name does not count.
    const patterns = names.map((name) => new RegExp(`(?<![\\w.])${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?!\\w)`));
    const wrong = new Set<string>();
    const texts = new Map(allAdvice().map(({ name, advice }) => [textOfAdvice(advice), name]));
    for (const [text, name] of texts) for (const pattern of patterns) if (pattern.test(text)) wrong.add(`${name}: ${pattern}`);
    expect([...wrong]).toEqual([]);
  });

  test('the guard itself sees what it must see', () => {
    const seen = (text: string) => mentionsInProse(text).map(({ kind, name }) => `${kind} ${name}`);
    expect(seen('use torch_npu.npu_matmul')).toContain('api torch_npu.npu_matmul');
    expect(seen('set `comp_rate=0.5`')).toContain('keyword comp_rate');
    expect(seen('设置 `HCCL_RDAM_TC`')).toContain('environment HCCL_RDAM_TC');
    expect(seen('call `set_mode("static")`')).toContain('member set_mode');
    expect(seen('use `NpuImageDecoder`')).toContain('member NpuImageDecoder');
    const coded = (code: string) => mentionsInCode(code).map(({ kind, name }) => `${kind} ${name}`);
    expect(coded('import torch_npu as n\nn.npu.set_mode("static")\n')).toContain('api torch_npu.npu.set_mode');
    expect(coded('loader.prefetch(4)\n')).toContain('member prefetch');
    expect(coded('x = f(comp_rate=0.5)\n')).toContain('keyword comp_rate');
    expect(coded('export HCCL_RDAM_TC=1')).toContain('environment HCCL_RDAM_TC');
    expect(mentionsInEdit({ file: 'a', startLine: 1, endLine: 1, before: 'f(a)', after: 'f(a, comp_rate=1)', kind: 'suggestion' })).toEqual(
      [{ kind: 'keyword', name: 'comp_rate' }],
    );
  });
});

/** Names in texts that are no advice on torch_npu, each with what it is; `where`: the only documents that may say it. */
const TOLD: readonly { readonly name: RegExp; readonly why: string; readonly where?: RegExp }[] = [
  { name: /^NPU_ADVISOR_/, why: 'settings of this server' },
  { name: /^ASCEND_PROFILER_OUTPUT$/, why: 'a folder of the profile' },
  { name: /^torch\.profiler$/, why: 'the GPU side of a comparison' },
  { name: /^torch\.nn\.DataParallel$/, why: 'named as not supported' },
  { name: /^torch\.jit\.script$|^torch\.profiler\.profile$/, why: 'named as what does not work on NPUs' },
  {
    name: /^torch_npu\.(?:amp|npu_matmul|contrib\.pipeline|utils\.data)$|^torch\.profiler\.ProfilerActivity\.NPU$/,
    why: 'quoted as what does not exist',
    where: /^docs\/faq(?:\.zh)?\.md$/,
  },
  { name: /^buffer_size$/, why: 'a keyword of TensorFlow, quoted as what does not exist here', where: /^docs\/faq(?:\.zh)?\.md$/ },
  { name: /^torch_npu\.amp$/, why: 'the code a rule finds fault with', where: /^docs\/(?:zh\/)?rules\/migration-review\.md$/ },
  { name: /^(?:worker|state|outcome|event)$/, why: 'a service of compose, labels of metrics', where: /^docs\/operate(?:\.zh)?\.md$/ },
  // Capturing with other frameworks; each name looked up in the framework's own source or documentation.
  {
    name: /^mindspore\.profiler\.(?:profile|schedule|tensorboard_trace_handler|_ExperimentalConfig|ProfilerActivity\.[CN]PU|ProfilerLevel\.Level1|AicoreMetrics\.PipeUtilization|ExportType\.Text)$/,
    why: 'MindSpore 2.6 and newer',
    where: /^docs\/capture(?:\.zh)?\.md$/,
  },
  {
    name: /^(?:discrete|contents|level|analysis)$/,
    why: 'options of verl: verl/trainer/config/profiler/profiler.yaml',
    where: /^docs\/capture(?:\.zh)?\.md$/,
  },
  { name: /^(?:callbacks|max_steps)$/, why: 'arguments of the Trainer of transformers', where: /^docs\/capture(?:\.zh)?\.md$/ },
  { name: /^is_gradient_accumulation_boundary$/, why: 'an engine of DeepSpeed', where: /^docs\/capture(?:\.zh)?\.md$/ },
  { name: /^(?:accumulate|sync_gradients)$/, why: 'an Accelerator', where: /^docs\/capture(?:\.zh)?\.md$/ },
  { name: /^(?:loss|model)$/, why: "the reader's own", where: /^docs\/capture(?:\.zh)?\.md$/ },
];

function isTold(path: string, { name }: Mention): boolean {
  return TOLD.some((told) => told.name.test(name) && (told.where === undefined || told.where.test(path)));
}

/** Names in a document or a module that are on no list: APIs, environment variables, keywords between backticks, and snippets. */
function unknownNames(path: string, text: string): string[] {
  const mentions: Mention[] = [];
  for (const match of text.matchAll(/\b(?:torch|torch_npu|contextlib|gc|apex)(?:\.\w+)+/g)) mentions.push({ kind: 'api', name: match[0] });
  const variables =
    /\b(?:ACL|ACLNN|ASCEND|COMBINED|CPU_AFFINITY|HCCL|HOST_CACHE|INF_NAN|MULTI_STREAM|NPU|OMP|PER_STREAM|PYTORCH|STREAMS|TASK|TORCH)(?:_[A-Z0-9]+)+\b/g;
  for (const match of text.matchAll(variables)) mentions.push({ kind: 'environment', name: match[0] });
  // Behind `?` or `&` it is part of an address.
  for (const [literal] of text.matchAll(/`[^`\n]+`/g))
    for (const match of literal.matchAll(/(?<![\w.?&-])([a-z_]\w*)=(?![=>{])/g)) mentions.push({ kind: 'keyword', name: match[1]! });
  for (const [, code] of path.endsWith('.md') ? text.matchAll(/^```python\n([\s\S]*?)^```/gm) : []) mentions.push(...mentionsInCode(code!));
  return mentions
    .filter((mention) => !isOwn(mention) && !isTold(path, mention))
    .filter((mention) => matchingOnce(mention, '', () => [...ALLOWED.keys()]).length === 0)
    .map(({ kind, name }) => `${path}: ${kind} ${name}`);
}

/** The strings of a module: what it says. Names that a rule looks for are in its facts, which say nothing. */
function textsOfModule(source: string): string {
  return [...source.matchAll(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g)]
    .map(([text]) => text.slice(1, -1).replaceAll(/\$\{[^{}]*\}/g, ''))
    .join('\n');
}

describe('texts', () => {
  const root = new URL('../../', import.meta.url);
  const filesOf = (folder: string, ending: RegExp): string[] =>
    readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
      .filter((path) => ending.test(path))
      .map((path) => `${folder}/${path}`);
  const files = [
    'README.md',
    'README.zh.md',
    'CONTRIBUTING.md',
    ...filesOf('docs', /\.md$/),
    ...filesOf('src/rules', /\.(ts|md)$/),
    ...filesOf('src/report', /\.ts$/),
    ...filesOf('src/engine', /\.ts$/),
    ...filesOf('src/render', /\.ts$/),
    ...filesOf('src/commands', /\.ts$/),
    ...filesOf('templates', /\.hbs$/),
  ];

  test('documents, rules, reports, commands and templates name nothing that is not on the list', () => {
    expect(files.length).toBeGreaterThan(150);
    const wrong = files.flatMap((path) => {
      const text = readFileSync(new URL(path, root), 'utf8');
      return unknownNames(path, path.endsWith('.ts') ? textsOfModule(text) : text);
    });
    expect([...new Set(wrong)]).toEqual([]);
  });

  test('a false name is seen wherever it stands', () => {
    expect(unknownNames('docs/capture.md', 'Call `f(boost=True)` of torch_npu.amp.')).toEqual([
      'docs/capture.md: api torch_npu.amp',
      'docs/capture.md: keyword boost',
    ]);
    expect(unknownNames('docs/faq.md', 'There is no torch_npu.amp, take torch_npu.npu.turbo.')).toEqual([
      'docs/faq.md: api torch_npu.npu.turbo',
    ]);
    expect(unknownNames('a.md', 'Use torch_npu.npu.turbo, or `boost=True`.')).toEqual([
      'a.md: api torch_npu.npu.turbo',
      'a.md: keyword boost',
    ]);
    expect(unknownNames('a.md', 'export HCCL_TURBO=1')).toEqual(['a.md: environment HCCL_TURBO']);
    expect(unknownNames('a.md', '```python\nimport torch_npu\ntorch_npu.npu_matmul(a, b)\n```\n')).toContain(
      'a.md: api torch_npu.npu_matmul',
    );
    expect(textsOfModule("x = { en: 'torch_npu.amp' } // torch.no\nf(`a \u0024{LOCAL_X}`)")).toBe('torch_npu.amp\na ');
  });
});

describe('deprecated names', () => {
  test('none of them is advised, and what is named instead is allowed', () => {
    for (const [name, replacements] of DEPRECATED) {
      expect(ALLOWED.has(name), name).toBe(false);
      for (const replacement of replacements) expect(ALLOWED.has(replacement), replacement).toBe(true);
    }
    for (const [name] of REMOVED) expect(ALLOWED.has(name), name).toBe(false);
  });
});

describe('allow-list', () => {
  test('it is sorted and every name is used by a remedy', () => {
    const names = [...ALLOWED.keys()];
    expect(names).toEqual([...names].sort());
    const used = new Set([...REMEDIES.values()].flatMap((remedy) => remedy.apis));
    expect(names.filter((name) => !used.has(name))).toEqual([]);
  });

  test('every declared name is on it', () => {
    for (const remedy of REMEDIES.values()) for (const name of remedy.apis) expect(ALLOWED.has(name), `${remedy.id}: ${name}`).toBe(true);
  });

  test('it holds no name that never existed, and the 22 known ones are kept apart', () => {
    expect(NON_EXISTENT).toHaveLength(22);
    for (const { name } of NON_EXISTENT) expect(ALLOWED.has(name), name).toBe(false);
  });
});
