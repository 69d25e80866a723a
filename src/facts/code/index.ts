import type { CodeFacts, CodeSetting, Occurrence } from '../../model/code.ts';
import { NON_EXISTENT } from '../../model/npu-names.ts';
import type { SourceTree } from '../../model/source-tree.ts';
import { type Setting, settingsIn, settingsOf } from '../../source/launch/settings.ts';
import { isPython } from '../../source/readable-paths.ts';
import { distributedOccurrences, rankOccurrences } from './distributed.ts';
import { callOccurrences, nameOccurrences } from './names.ts';
import { isForeign, type NpuFile, npuFileOf } from './npu-file.ts';
import { profilingOccurrences } from './profiling.ts';
import { rewriteOccurrences } from './rewrites.ts';
import { formatOccurrences, fusedOccurrences, gradientOccurrences, precisionOccurrences, scriptOccurrences } from './training.ts';
import { versionFacts } from './versions.ts';

/** Findings of one kind in one repository; more are of the same making. */
const MAX_OCCURRENCES = 400;

/** What a repository tells about running on NPUs. Each part is read when it is first asked for. */
export function codeFacts(tree: SourceTree): CodeFacts {
  return {
    get migration() {
      return once(this, 'migration', migrationOf(tree));
    },
    get changedSettings() {
      return once(this, 'changedSettings', changedSettingsOf(tree));
    },
    settings: (variable) => settingsOf(tree, variable).map(toSetting),
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

function migrationOf(tree: SourceTree): CodeFacts['migration'] {
  const versions = versionFacts(tree, (file, first, last) => isChanged(tree, file, first, last));
  const occurrences: Occurrence[] = [...versions.occurrences, ...misspelt(tree)];
  let files = 0;
  let npuFiles = 0;
  const isTransferred = tree.paths.some((path) => isPython(path) && TRANSFERS.test(tree.read(path) ?? ''));
  if (!isTorchNpuItself(tree)) {
    for (const path of tree.paths) {
      if (!isPython(path) || isForeign(path) || !touches(tree, path)) continue;
      files++;
      const file = npuFileOf(tree, path);
      if (file === null) continue;
      npuFiles++;
      occurrences.push(
        ...[...occurrencesIn(file, isTransferred), ...rewriteOccurrences(file, tree.changes?.get(path) ?? [])].filter(({ site }) =>
          isChanged(tree, site.file, site.startLine, site.endLine),
        ),
      );
      if (occurrences.length > MAX_OCCURRENCES) break;
    }
  }
  return {
    occurrences: occurrences.slice(0, MAX_OCCURRENCES),
    files,
    npuFiles,
    isDiff: tree.changes !== undefined,
    pinnedTorchNpu: versions.torchNpu,
  };
}

function occurrencesIn(file: NpuFile, isTransferred: boolean): Occurrence[] {
  return [
    ...nameOccurrences(file),
    ...callOccurrences(file),
    ...distributedOccurrences(file, isTransferred),
    ...rankOccurrences(file),
    ...profilingOccurrences(file, isTransferred),
    ...precisionOccurrences(file),
    ...fusedOccurrences(file),
    ...gradientOccurrences(file),
    ...formatOccurrences(file),
    ...scriptOccurrences(file),
  ];
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

function changedSettingsOf(tree: SourceTree): CodeSetting[][] {
  return tree.paths
    .filter(
      (path) =>
        !isForeign(path) && touches(tree, path) && /HCCL_|ASCEND_|TASK_QUEUE|NPU|ACLNN|STREAMS_PER_DEVICE/.test(tree.read(path) ?? ''),
    )
    .map((path) => settingsIn(tree, path).map(toSetting))
    .filter((settings) => settings.length > 0 && settings.some(({ file, line }) => isChanged(tree, file, line, line)));
}

function toSetting({ name, value, file, line, isDefault }: Setting): CodeSetting {
  return { name, value, file, line, isDefault };
}
