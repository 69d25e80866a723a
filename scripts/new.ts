/*
 * npm run new -- rule|remedy|importer ID   writes the files of a new unit, with a test that fails until they are filled in.
 *
 * What a unit is and what it must keep: docs/extend.md.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const KINDS = ['rule', 'remedy', 'importer'] as const;
export type Kind = (typeof KINDS)[number];

/** Names of files and folders that are no unit, by kind. */
const TAKEN: Readonly<Record<Kind, readonly string[]>> = {
  rule: ['index'],
  remedy: ['index', 'allow-list', 'reading', 'wording'],
  importer: ['index'],
};

const FOLDERS: Readonly<Record<Kind, string>> = { rule: 'src/rules', remedy: 'src/remedies', importer: 'src/importers' };

/** Why an id cannot be used, or null. Ids become names of files and of variables, and stay: settings and fingerprints hold them. */
export function refusalOf(root: string, kind: string, id: string): string | null {
  if (!isKind(kind)) return `"${kind}" is no kind of unit; use one of: ${KINDS.join(', ')}`;
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(id)) return `"${id}" is no id: small letters and digits in words, joined by single hyphens`;
  if (id.length > 40) return `"${id}" is longer than 40 characters`;
  if (!id.includes('-') && isReserved(id)) return `"${id}" is a word of the language`;
  const folder = join(root, FOLDERS[kind]);
  const there = existsSync(folder) ? readdirSync(folder).map((name) => name.replace(/\.ts$/, '')) : [];
  const same = [...there, ...TAKEN[kind]].find((name) => camel(name) === camel(id));
  if (same !== undefined) return `${FOLDERS[kind]} has "${same}" already`;
  const test = testOf(kind, id);
  return existsSync(join(root, test)) ? `${test} is there already` : null;
}

function isKind(kind: string): kind is Kind {
  return (KINDS as readonly string[]).includes(kind);
}

/** Whether the registry could not import something of this name. */
function isReserved(word: string): boolean {
  try {
    new Function(`'use strict'; let ${word};`);
    return false;
  } catch {
    return true;
  }
}

function camel(id: string): string {
  return id.replace(/-([a-z0-9])/g, (_, c: string) => c.toUpperCase());
}

function pascal(id: string): string {
  const name = camel(id);
  return `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
}

function testOf(kind: Kind, id: string): string {
  return `${FOLDERS[kind].replace('src/', 'test/')}/${id}.test.ts`;
}

/** The files of a new unit, by path. */
export function filesOf(kind: Kind, id: string): Readonly<Record<string, string>> {
  switch (kind) {
    case 'rule':
      return {
        [`src/rules/${id}/index.ts`]: ruleCode(id),
        [`src/rules/${id}/doc.md`]: RULE_PROSE,
        [`src/rules/${id}/doc.zh.md`]: RULE_PROSE_ZH,
        [testOf(kind, id)]: ruleTest(id),
      };
    case 'remedy':
      return { [`src/remedies/${id}.ts`]: remedyCode(id), [testOf(kind, id)]: remedyTest(id) };
    case 'importer':
      return { [`src/importers/${id}/index.ts`]: importerCode(id), [testOf(kind, id)]: importerTest(id) };
  }
}

const NEXT: Readonly<Record<Kind, readonly string[]>> = {
  rule: [
    'npm run gen, which registers it and makes its page',
    'add its id to the list in test/rules/registry.test.ts: settings may hold it from then on',
    'with a fault in lab/simulator: its example in scripts/examples.ts, then npm run examples -- ID',
  ],
  remedy: [
    'npm run gen, which registers it',
    'add what rules hand over to PARAMS in test/remedies/situations.ts, and its id to `remedies` of those rules',
    'put every API it names on src/remedies/allow-list.ts, with its source',
  ],
  importer: [
    'open it from findCaptures (src/importers/find-captures.ts) or readRank (src/importers/index.ts)',
    'list the files it opens in src/importers/wanted.ts, so that they are fetched from large artifacts',
  ],
};

/** Writes the files of a new unit; throws when its id cannot be used. */
export function writeUnit(
  root: string,
  kind: string,
  id: string,
): { readonly written: readonly string[]; readonly next: readonly string[] } {
  const refusal = refusalOf(root, kind, id);
  if (refusal !== null || !isKind(kind)) throw new Error(refusal ?? kind);
  const files = filesOf(kind, id);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text, { flag: 'wx' });
  }
  const written = Object.keys(files);
  return {
    written,
    next: [`fill in what says TODO; ${written.at(-1)} fails until then`, ...NEXT[kind].map((step) => step.replace('ID', id))],
  };
}

function ruleCode(id: string): string {
  return `import type { RankFacts } from '../../model/facts.ts';
import { defineRule } from '../../model/rule.ts';

export default defineRule({
  id: '${id}',
  title: { en: 'TODO what is wrong, in five words', zh: 'TODO 一句话说明问题' },
  // data, host, compute, communication, memory, capture, code or comparison
  category: 'compute',
  // A preview never fails a gate. Stable once the simulator and real profiles agree with it.
  maturity: 'preview',
  // Without these the rule is not applicable.
  needs: ['steps', 'kernels'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest cost reported, as a share of the step', zh: '可报告的最小耗时，占迭代耗时的比例' },
      why: { en: 'TODO the measurement or the source behind this value', zh: 'TODO 取值的依据' },
    },
  },
  remedies: [],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    const costs = job.ranks.map(costMs);
    if (step === null || costs.every((cost) => cost === null)) {
      return { outcome: 'notApplicable', reason: { text: { en: 'TODO what is missing', zh: 'TODO 缺少什么' } } };
    }
    const ranks = costs.flatMap((cost, rank) => (cost !== null && cost >= options.minShare * step ? [rank] : []));
    const worst = Math.max(...costs.map((cost) => cost ?? 0));
    if (ranks.length === 0) {
      return {
        outcome: 'pass',
        reason: { text: { en: 'it costs at most {ms:ms} per step', zh: '每迭代最多 {ms:ms}' }, params: { ms: worst } },
      };
    }
    return {
      outcome: 'findings',
      findings: [
        {
          title: { text: { en: 'TODO title of the finding', zh: 'TODO 标题' } },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: 'medium',
          evidence: ranks.slice(0, 3).map((rank) => ({
            message: {
              text: { en: 'rank {rank:text}: TODO, {ms:ms} per step', zh: '卡 {rank:text}：TODO，每迭代 {ms:ms}' },
              params: { rank: job.ranks[rank]!.rank ?? '?', ms: costs[rank]! },
            },
            file: 'kernel_details.csv',
            rank,
          })),
          caveats: [],
          // What the replay takes out, by rank: with it the saving is modelled, without it a bound.
          removal: null,
          boundMs: worst,
          boundMethod: { text: { en: 'TODO how the bound is computed', zh: 'TODO 上限的算法' } },
          information: false,
          symptomOf: null,
          frames: [],
          remedies: [],
          // The place, never a measured number: the finding is known again by it.
          hotspot: 'TODO',
        },
      ],
    };
  },
});

/** TODO ms per step that the cause costs one rank; null where its capture does not tell. Missing is never 0. */
function costMs(_rank: RankFacts): number | null {
  return null;
}
`;
}

const RULE_PROSE = `## What it measures
TODO which rows of which file, and what is counted.

## Why it costs
TODO what waits for it, and how the saving is known.

## How to fix
TODO the change, by its name in the framework.

## When not to use it
TODO what looks like it and is harmless.
`;

const RULE_PROSE_ZH = `## 检查什么
TODO 哪个文件的哪些行，如何计数。

## 为何耗时
TODO 谁在等它，可省时间由何得出。

## 怎么改
TODO 改法，用框架中的名称。

## 何时不适用
TODO 看起来相似但无害的情形。
`;

function ruleTest(id: string): string {
  return `import { describe, expect, test } from 'vitest';
import { checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = '${id}';

describe('quiet', () => {
  test('a healthy job', async () => {
    expect(checkOf(await reportFor({ ranks: 2, layers: 4 }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('TODO trap: looks like it, and is hidden or harmless', () => {
    expect.fail('TODO');
  });

  test('not applicable where the data is missing', async () => {
    expect(checkOf(await reportFor({ ranks: 2, layers: 4, level: 0 }), RULE).outcome).toBe('notApplicable');
  });
});

describe('loud', () => {
  test('TODO a job with the fault: the culprits, and the true saving of the simulator', async () => {
    const finding = findingOf(await reportFor({ ranks: 2, layers: 4, faults: [] }), RULE);
    expect(finding).toMatchObject({ ranks: [0, 1], saving: { basis: 'bound' } });
  });

  test('TODO a second job: one rank only, or another size', () => {
    expect.fail('TODO');
  });
});
`;
}

function remedyCode(id: string): string {
  return `import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { both, prose } from './wording/bilingual.ts';

const TITLE = both('TODO what to change', 'TODO 改什么');

/** TODO null where it is not true: other hardware, another release, done already in the source. */
function isTrueHere(_context: RemedyContext): boolean {
  return false;
}

function advise(_finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice | null {
  if (!isTrueHere(context)) return null;
  return {
    title: TITLE,
    text: prose(
      both('TODO why this helps.', 'TODO 为何有效。'),
      both('Check: TODO what the next profile shows.', '验证：TODO 下一次 profile 的变化。'),
    ),
    code: null,
    preconditions: [both('TODO what has to hold.', 'TODO 前提。')],
    references: [],
    edits: [],
    locations: [],
  };
}

/** TODO against what. */
export default {
  id: '${id}',
  title: TITLE,
  // Every API, keyword and variable that texts, code and edits name; each stands on the allow-list.
  apis: [],
  advise,
} satisfies Remedy;
`;
}

function remedyTest(id: string): string {
  return `import { describe, expect, test } from 'vitest';
import remedy from '../../src/remedies/${id}.ts';
import { contextOf, findingOf } from './situations.ts';

const advice = (over: Parameters<typeof contextOf>[0] = {}) => remedy.advise(findingOf(), contextOf(over));

describe('quiet', () => {
  test('hardware on which it is not true', () => {
    expect(advice({ soc: '950' })).toBeNull();
  });

  test('TODO the source has it already', () => {
    expect.fail('TODO');
  });
});

describe('loud', () => {
  test('the card and release it is for', () => {
    expect(advice()).not.toBeNull();
  });

  test('TODO the edit, as lines before and after; or that there is none, and why', () => {
    expect.fail('TODO');
  });
});
`;
}

function importerCode(id: string): string {
  const name = pascal(id);
  return `import type { ProfileEntry } from '../../sources/source.ts';
import { cellNumber, cellText, findColumn, scanCsv } from '../scan-csv.ts';

/** TODO one row, in the units of the model: ms or ns. Missing is NaN or null, never 0. */
export interface ${name}Row {
  readonly name: string;
  readonly ms: number;
}

/** TODO more rows than this are not kept. */
const MAX_ROWS = 1_000_000;

/** TODO whether a file is of this format, by its name: its folder may be called anything. */
export function is${name}(path: string): boolean {
  return path.endsWith('/TODO.csv');
}

/** Rows of a file as a stream, columns by header name. A damaged file costs that file only. */
export async function read${name}(entry: ProfileEntry): Promise<{ readonly rows: readonly ${name}Row[]; readonly truncated: boolean }> {
  const rows: ${name}Row[] = [];
  const { truncated } = await scanCsv(entry.open(), (header) => {
    const column = { name: findColumn(header, 'Name'), us: findColumn(header, 'TODO Duration(us)') };
    if (column.name < 0 || column.us < 0) return null;
    return (row) => {
      if (rows.length < MAX_ROWS) rows.push({ name: cellText(row, column.name) ?? '', ms: (cellNumber(row, column.us) ?? Number.NaN) / 1000 });
    };
  });
  return { rows, truncated };
}
`;
}

function importerTest(id: string): string {
  const name = pascal(id);
  return `import { describe, expect, test } from 'vitest';
import { is${name}, read${name} } from '../../src/importers/${id}/index.ts';
import { entryOf } from '../support/profile-text.ts';

// TODO the name and the header as real files have them.
const FILE = 'rank0/example.csv';
const HEADER = 'Name,Duration(us)';

const read = (text: string) => read${name}(entryOf(FILE, text));

describe('quiet', () => {
  test('files of other formats', () => {
    expect(is${name}('rank0/ASCEND_PROFILER_OUTPUT/kernel_details.csv')).toBe(false);
  });

  test('a missing cell is missing, not 0', async () => {
    expect((await read(\`\${HEADER}\\nMatMul,N/A\\n\`)).rows).toEqual([{ name: 'MatMul', ms: Number.NaN }]);
  });

  test('another header', async () => {
    expect((await read('a,b\\n1,2\\n')).rows).toEqual([]);
  });
});

describe('loud', () => {
  test('the file is found by its name', () => {
    expect(is${name}(FILE)).toBe(true);
  });

  test('its rows, in the units of the model', async () => {
    expect((await read(\`\${HEADER}\\nMatMul,1500\\n\`)).rows).toEqual([{ name: 'MatMul', ms: 1.5 }]);
  });

  test('a file that breaks off keeps what came before, and says so', async () => {
    expect(await read(\`\${HEADER}\\nMatMul,1500\\n"Ca\`)).toMatchObject({ rows: [{ name: 'MatMul' }], truncated: true });
  });
});
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [kind = '', id = ''] = process.argv.slice(2);
  try {
    const root = fileURLToPath(new URL('..', import.meta.url));
    const { written, next } = writeUnit(root, kind, id);
    // Where lines break depends on the length of the id.
    spawnSync(join(root, 'node_modules/.bin/biome'), ['format', '--write', ...written.filter((path) => path.endsWith('.ts'))], {
      cwd: root,
    });
    console.log(`${written.map((path) => `wrote ${path}`).join('\n')}\n\nNext:\n${next.map((step, i) => `${i + 1}. ${step}`).join('\n')}`);
  } catch (error) {
    console.error(`npm run new -- rule|remedy|importer ID: ${error instanceof Error ? error.message : error}`);
    process.exitCode = 2;
  }
}
