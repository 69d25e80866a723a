import type { CodeFacts, CodeSetting, Occurrence } from '../../model/code.ts';
import { JUDGED_VARIABLES } from '../../model/environment-values.ts';
import { NON_EXISTENT } from '../../model/npu-names.ts';
import type { SourceTree } from '../../model/source-tree.ts';
import { type Setting, settingsIn, settingsOf } from '../../source/launch/settings.ts';
import { type Pin, pinsOf } from '../../source/pins.ts';
import { isPython } from '../../source/readable-paths.ts';
import { distributedOccurrences, rankOccurrences } from './distributed.ts';
import { CALL_WORDS, callOccurrences, NAME_WORDS, nameOccurrences } from './names.ts';
import { isForeign, type NpuFile, npuFileOf, speaksToNpus } from './npu-file.ts';
import { profilingOccurrences } from './profiling.ts';
import { mayRewrite, rewriteOccurrences } from './rewrites.ts';
import {
  formatOccurrences,
  fusedOccurrences,
  gradientOccurrences,
  mayTrainInHalf,
  precisionOccurrences,
  scriptOccurrences,
} from './training.ts';
import { pinnedVersion, versionOccurrences } from './versions.ts';

/** Findings of one kind in one repository; more are of the same making. */
const MAX_OCCURRENCES = 400;

/** Characters parsed of one repository: about 20 s. Those of MindSpeed-MM that may matter are 3 million. */
const MAX_PARSED = 12_000_000;

/** What a repository tells about running on NPUs. Each part is read when it is first asked for. */
export function codeFacts(tree: SourceTree): CodeFacts {
  let pins: readonly Pin[] | null = null;
  const readPins = (): readonly Pin[] => {
    pins ??= pinsOf(tree);
    return pins;
  };
  return {
    get migration() {
      return once(this, 'migration', migrationOf(tree, readPins()));
    },
    get versions() {
      return once(this, 'versions', { torch: pinnedVersion(readPins(), 'torch'), torchNpu: pinnedVersion(readPins(), 'torch_npu') });
    },
    get changedSettings() {
      return once(this, 'changedSettings', changedSettingsOf(tree));
    },
    settings: (variable) => settingsOf(tree, variable).map((setting) => toSetting(tree, setting)),
  };
}

function once<T>(owner: object, name: string, value: T): T {
  Object.defineProperty(owner, name, { value });
  return value;
}

/** Whether the pull request adds one of the lines; everything counts without a diff. */
function isChanged(tree: SourceTree, file: string, first: number, last: number): boolean {
  if (tree.changes === undefined) return true;
  return (tree.changes.get(file) ?? []).some(({ startLine, added }) => startLine <= last && first < startLine + added.length);
}

const touches = (tree: SourceTree, file: string): boolean => tree.changes === undefined || tree.changes.has(file);

/** The repository is torch_npu, or carries a copy of it: what it imports is its own. */
const isTorchNpuItself = (tree: SourceTree): boolean =>
  tree.paths.some((path) => /(^|\/)torch_npu\/(__init__|npu\/__init__)\.py$/.test(path));

const TRANSFERS =
  /^[ \t]*(?:from[ \t]+torch_npu\.contrib[ \t]+import\b.*\btransfer_to_npu\b|import[ \t]+torch_npu\.contrib\.transfer_to_npu\b)/m;

function migrationOf(tree: SourceTree, pins: readonly Pin[]): CodeFacts['migration'] {
  const occurrences: Occurrence[] = [
    ...versionOccurrences(pins, (file, first, last) => isChanged(tree, file, first, last)),
    ...misspelt(tree),
  ];
  let files = 0;
  let npuFiles = 0;
  let unread = 0;
  let parsed = 0;
  const isTransferred = tree.paths.some((path) => isPython(path) && TRANSFERS.test(tree.read(path) ?? ''));
  if (!isTorchNpuItself(tree)) {
    for (const path of tree.paths) {
      if (!isPython(path) || isForeign(path) || !touches(tree, path)) continue;
      files++;
      if (parsed > MAX_PARSED) {
        unread++;
        continue;
      }
      const { isNpu, isUnread, parsed: characters, found } = occurrencesIn(tree, path, isTransferred);
      parsed += characters;
      if (isNpu) npuFiles++;
      if (isUnread) unread++;
      occurrences.push(...found.filter(({ site }) => isChanged(tree, site.file, site.startLine, site.endLine)));
      if (occurrences.length > MAX_OCCURRENCES) break;
    }
  }
  return {
    occurrences: occurrences.slice(0, MAX_OCCURRENCES),
    files,
    npuFiles,
    unread,
    isDiff: tree.changes !== undefined,
  };
}

interface Check {
  /** A cheap look at the text: what it may be worth parsing for. */
  readonly mayMatter: (text: string) => boolean;
  readonly find: (file: NpuFile, isTransferred: boolean) => Occurrence[];
}

const CHECKS: readonly Check[] = [
  { mayMatter: (text) => NAME_WORDS.test(text), find: nameOccurrences },
  { mayMatter: (text) => CALL_WORDS.test(text), find: callOccurrences },
  { mayMatter: (text) => /["']nccl["']|(?<!Distributed)DataParallel\b/.test(text), find: distributedOccurrences },
  {
    mayMatter: (text) => /\bget_rank\b|["']RANK["']|init_process_group/.test(text) && /device_ids|set_device|npu:\{|cuda:\{/.test(text),
    find: rankOccurrences,
  },
  { mayMatter: (text) => /\bprofile\(/.test(text) && text.includes('profiler'), find: profilingOccurrences },
  { mayMatter: mayTrainInHalf, find: precisionOccurrences },
  { mayMatter: (text) => text.includes('GradScaler') && /\bfused\b/.test(text), find: fusedOccurrences },
  { mayMatter: (text) => text.includes('set_to_none') && text.includes('NpuFused'), find: gradientOccurrences },
  { mayMatter: (text) => /npu_format_cast|allow_internal_format\s*=\s*True/.test(text), find: formatOccurrences },
  { mayMatter: (text) => text.includes('transfer_to_npu') && /\bscript(_method)?\b/.test(text), find: scriptOccurrences },
];

interface InFile {
  readonly isNpu: boolean;
  /** It may hold something, but could not be looked into. */
  readonly isUnread: boolean;
  /** Characters that were parsed. */
  readonly parsed: number;
  readonly found: readonly Occurrence[];
}

/** What the checks find in one file; a permutation may have been rewritten in any changed one. */
function occurrencesIn(tree: SourceTree, path: string, isTransferred: boolean): InFile {
  const text = tree.read(path) ?? '';
  const nothing = { isUnread: false, parsed: 0, found: [] };
  if (!speaksToNpus(text)) return { ...nothing, isNpu: false };
  const checks = CHECKS.filter(({ mayMatter }) => mayMatter(text));
  const blocks = (tree.changes?.get(path) ?? []).filter(mayRewrite);
  if (checks.length === 0 && blocks.length === 0) return { ...nothing, isNpu: true };
  const file = npuFileOf(tree, path);
  if (file === null) return { isNpu: true, isUnread: true, parsed: text.length, found: [] };
  const found = [...checks.flatMap(({ find }) => find(file, isTransferred)), ...rewriteOccurrences(file, blocks)];
  return { isNpu: true, isUnread: false, parsed: text.length, found };
}

/** Environment variables that nothing reads because of their spelling. */
const MISSPELT: ReadonlyMap<string, string> = new Map(
  NON_EXISTENT.flatMap(({ name, replacement }) => (/^[A-Z][A-Z0-9_]+$/.test(name) && replacement !== null ? [[name, replacement]] : [])),
);

function misspelt(tree: SourceTree): Occurrence[] {
  return [...MISSPELT].flatMap(([name, replacement]) =>
    settingsOf(tree, name)
      .filter(({ file, line }) => isChanged(tree, file, line, line))
      .map(({ file, line, text }): Occurrence => {
        const after = text.replace(name, replacement);
        const edit = text.split(name).length === 2 ? { file, startLine: line, endLine: line, before: text, after } : null;
        return {
          kind: 'unknown-variable',
          name,
          replacement,
          confidence: 'high',
          site: { file, startLine: line, endLine: line, symbol: null, text: text.trim(), edit },
        };
      }),
  );
}

const JUDGED = new RegExp(`\\b(?:${JUDGED_VARIABLES.join('|')})\\b`);

function changedSettingsOf(tree: SourceTree): CodeSetting[][] {
  return tree.paths
    .filter((path) => !isForeign(path) && touches(tree, path) && JUDGED.test(tree.read(path) ?? ''))
    .map((path) => settingsIn(tree, path).map((setting) => toSetting(tree, setting)))
    .filter((settings) => settings.some((setting) => setting.isChanged));
}

function toSetting(tree: SourceTree, { name, value, file, line, isDefault }: Setting): CodeSetting {
  return { name, value, file, line, isDefault, isChanged: isChanged(tree, file, line, line) };
}
