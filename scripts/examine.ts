/*
 * npm run examine -- FOLDER [--files LIST]   what every remedy would show in strangers' code, as JSON lines for a reviewer
 * npm run examine -- FOLDER --no-evidence    the same without a profile and after a healthy one: only what needs none may appear
 *
 * FOLDER is one repository. For each of its training files, or those that LIST names (one path a line), every rule's finding
 * is injected as if the profile pointed into that file, on every hardware and with all params the rules hand over. All lines
 * count as changed by the pull request, so that every one-click edit shows. Nothing of the folder is run.
 */
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { analyse } from '../src/engine/analyse.ts';
import type { RemedyContext } from '../src/model/remedy.ts';
import type { Edit, Finding, Report } from '../src/model/report.ts';
import type { Category } from '../src/model/rule.ts';
import type { SourceTree } from '../src/model/source-tree.ts';
import { REMEDIES } from '../src/remedies/index.ts';
import { RULES } from '../src/rules/index.ts';
import { folderSourceTree } from '../src/source/folder-source-tree.ts';
import { isAside, isPython } from '../src/source/readable-paths.ts';
import { openSource } from '../src/sources/index.ts';
import { PARAMS, SOCS, VERSIONS } from '../test/remedies/situations.ts';
import { DEFAULT_OPTIONS, withWrittenJob } from '../test/support/grid.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { files: { type: 'string' }, 'no-evidence': { type: 'boolean', default: false } },
});
const folder = positionals[0];
if (folder === undefined || positionals.length > 1) throw new Error('give one folder of sources');

const TRAINS = /\.backward\(|optimizer\.step\(|\bDataLoader\(|\bDistributedDataParallel\b|\bFullyShardedDataParallel\b|\bTrainer\(/;

/** Where a profile would point for a rule of that category: the first of these that the file holds. */
const PLACES: Readonly<Record<Category, readonly RegExp[]>> = {
  data: [/^\s*for .*\bin\b.*(load|data|batch|enumerate)/, /\bDataLoader\(/, /\.backward\(/],
  host: [/\.item\(|\.cpu\(|\.tolist\(/, /^\s*for .*\bin\b/, /\.backward\(/],
  compute: [/\.contiguous\(|\.permute\(/, /\bdef forward\(/, /\.backward\(/],
  communication: [/\.backward\(/, /\bDistributedDataParallel\b/, /\.step\(/],
  memory: [/\bempty_cache\(/, /\.step\(/, /\.backward\(/],
  capture: [/\bprofile\(|\bschedule\(/, /\.step\(/],
  comparison: [/\.step\(/],
  code: [],
};

type Shown = Readonly<Record<string, unknown>>;
const print = (shown: Shown): void => {
  process.stdout.write(`${JSON.stringify(shown)}\n`);
};

const whole = folderSourceTree(folder);
for (const note of whole.notes) process.stderr.write(`${folder}: ${note}\n`);
/** One object for all remedies, so that each file is parsed once. */
const tree: SourceTree = { paths: whole.paths, read: (path) => whole.read(path), inDiff: () => true };
/** How often a remedy asked for the source. */
let asked = 0;
/** All hardware in small repositories; in large ones two kinds for each params, in turn, so that an hour is enough. */
let turn = 0;
const isLarge = whole.paths.length > 200;

if (values['no-evidence']) await withoutEvidence();
else await withEvidence();

async function withEvidence(): Promise<void> {
  await sourceOnly();
  const named = values.files === undefined ? null : (await readFile(values.files, 'utf8')).split('\n').filter((line) => line !== '');
  const files = named ?? whole.paths.filter((path) => isPython(path) && !isAside(path) && TRAINS.test(whole.read(path) ?? ''));
  for (const file of files) {
    const text = whole.read(file);
    if (text === null) process.stderr.write(`${folder}/${file} was not read\n`);
    else examine(file, text);
  }
}

/** Every remedy of every rule, as if the profile pointed into this file; equal outcomes are told once. */
function examine(file: string, text: string): void {
  const shown = new Map<string, { readonly what: Shown; readonly situations: string[] }>();
  const add = (what: Shown, situation: string): void => {
    const key = JSON.stringify(what);
    const known = shown.get(key);
    if (known) known.situations.push(situation);
    else shown.set(key, { what, situations: [situation] });
  };
  for (const rule of RULES) {
    // What is told of the code itself needs no evidence; it is printed once for the repository.
    if (rule.category === 'code') continue;
    const locations = placeIn(file, text, PLACES[rule.category]);
    for (const id of rule.remedies) {
      for (const { situation, context } of situations(id)) {
        const before = asked;
        const advice = REMEDIES.get(id)!.advise({ rule: rule.id, ranks: [0], locations, confidence: 'high' }, context);
        for (const edit of advice?.edits ?? []) add({ remedy: id, what: 'edit', ...withSurroundings(edit) }, situation);
        for (const { file: path, line } of advice?.locations ?? []) add({ remedy: id, what: 'location', ...lineOf(path, line) }, situation);
        if (advice !== null && asked > before) add({ remedy: id, what: 'text', text: advice.text.en, code: advice.code }, situation);
        // What does not look at the source says the same everywhere.
        if (asked === before) break;
      }
    }
  }
  for (const { what, situations: all } of shown.values())
    print({ evidence: file, ...what, situations: [...new Set(all)].slice(0, 8), of: all.length });
}

function* situations(id: string): Generator<{ situation: string; context: RemedyContext }> {
  for (const params of PARAMS[id] ?? [{}]) {
    turn++;
    for (const [i, soc] of SOCS.entries()) {
      if (isLarge && (turn + i) % SOCS.length > 1) continue;
      const versions = VERSIONS[i % VERSIONS.length]!;
      yield {
        situation: `${soc ?? 'unknown hardware'}, torch ${versions.torch ?? 'unknown'}, ${JSON.stringify(params)}`,
        context: {
          soc,
          ...versions,
          params,
          get source() {
            asked++;
            return tree;
          },
        },
      };
    }
  }
}

function placeIn(file: string, text: string, patterns: readonly RegExp[]): Finding['locations'] {
  const lines = text.split('\n');
  const index = patterns.map((pattern) => lines.findIndex((line) => pattern.test(line))).find((at) => at !== -1) ?? 0;
  return [{ file, line: index + 1, symbol: functionAround(lines, index), provenBy: 'call-stack' }];
}

function functionAround(lines: readonly string[], index: number): string | null {
  const indent = lines[index]!.search(/\S|$/);
  for (let i = index; i >= 0; i--) {
    const match = /^(\s*)(?:async )?def (\w+)/.exec(lines[i]!);
    if (match && (match[1]!.length < indent || i === index)) return match[2]!;
  }
  return null;
}

function withSurroundings(edit: Edit): Shown {
  const lines = (whole.read(edit.file) ?? '').split('\n');
  return {
    ...edit,
    above: lines.slice(Math.max(0, edit.startLine - 9), edit.startLine - 1).join('\n'),
    below: lines.slice(edit.endLine, edit.endLine + 8).join('\n'),
  };
}

function lineOf(path: string, line: number): Shown {
  const lines = (whole.read(path) ?? '').split('\n');
  return { file: path, line, text: lines.slice(Math.max(0, line - 3), line + 3).join('\n') };
}

/** The whole way without a profile. */
async function sourceOnly(): Promise<void> {
  printReport(await analyse({ sources: [], options: DEFAULT_OPTIONS, source: tree }));
}

/** The whole way, without a profile and from one in which nothing is wrong. */
async function withoutEvidence(): Promise<void> {
  await sourceOnly();
  await withWrittenJob({ ranks: 2, steps: 6, seed: 1, itemEveryStep: false }, async (dir) => {
    const profile = await openSource(dir);
    try {
      const report = await analyse({ sources: [profile], options: DEFAULT_OPTIONS, source: tree });
      printReport({ ...report, findings: report.findings.filter(({ category }) => category !== 'code') });
    } finally {
      await profile.close();
    }
  });
}

function printReport({ findings }: Report): void {
  for (const { rule, title, recommendations, locations } of findings) {
    for (const { remedy, edits, text, code } of recommendations) {
      print({ rule, remedy, what: 'text', title, text, code });
      for (const edit of edits) print({ rule, remedy, what: 'edit', title, ...withSurroundings(edit) });
    }
    for (const { file, line } of locations) print({ rule, what: 'location', title, ...lineOf(file, line) });
  }
}
