import { isAside, isPython, isReadable } from '../source/readable-paths.ts';

export interface TreeEntry {
  readonly path: string;
  readonly sha: string;
  readonly bytes: number;
}

/** Scripts that start or drive a training, by name. */
const ENTRY = /(^|[_-])(train|trainer|training|main|run|launch|pretrain|finetune|sft|dpo|ppo|grpo|rl|worker|posttrain)(?=[_.-]|\d|$)/i;
/** What a training step is made of: where the advice of most findings belongs. */
const PART =
  /(data|loader|loading|batch|collat|optim|engine|model|modeling|loss|metric|distribut|parallel|ddp|fsdp|accelerat|amp|precision|arg|option|config|profil|checkpoint|logg|meter|init)/i;
const LAUNCH = /(\.(sh|bash|slurm|sbatch)$|(^|\/)(Docker|Container)file|\.dockerfile$)/i;
const VERSIONS = /(^|\/)((requirements|constraints)[\w.-]*\.txt|pyproject\.toml|setup\.(py|cfg))$/;
const WORKFLOW = /^\.github\/workflows\/[^/]+\.ya?ml$/;

export interface Budget {
  readonly maxFiles: number;
  readonly maxBytes: number;
}

/**
 * The files worth a request each: what the pull request changes, scripts that start a training, versions, and the parts of a
 * training step, near to the changes and to the root first. Everything where it fits.
 */
export function chooseFiles(entries: readonly TreeEntry[], changed: ReadonlySet<string>, budget: Budget): TreeEntry[] {
  const folders = new Set([...changed].filter(isReadable).map(folderOf));
  const ranked = entries
    .filter(({ path }) => isReadable(path))
    .map((entry) => ({ entry, rank: rankOf(entry, changed, folders) }))
    .sort((a, b) => a.rank - b.rank || a.entry.bytes - b.entry.bytes || (a.entry.path < b.entry.path ? -1 : 1));
  const chosen: TreeEntry[] = [];
  let bytes = 0;
  for (const { entry } of ranked) {
    if (chosen.length >= budget.maxFiles) break;
    if (bytes + entry.bytes > budget.maxBytes) continue;
    bytes += entry.bytes;
    chosen.push(entry);
  }
  return chosen;
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1);
}

/** The smaller, the sooner. */
function rankOf({ path }: TreeEntry, changed: ReadonlySet<string>, folders: ReadonlySet<string>): number {
  if (changed.has(path)) return 0;
  const depth = path.split('/').length - 1;
  const name = path.slice(path.lastIndexOf('/') + 1);
  const isNear = folders.has(folderOf(path)) ? 0 : 8;
  const aside = isAside(path) ? 100 : 0;
  if (VERSIONS.test(path)) return 10 + depth + aside;
  if (LAUNCH.test(path) || WORKFLOW.test(path)) return 12 + depth + isNear + aside;
  if (!isPython(path)) return 60 + depth + isNear + aside;
  const kind = ENTRY.test(name) ? 10 : PART.test(path) ? 20 : 30;
  return kind + depth + isNear + aside;
}

/** Files beyond those chosen that a stack names, by the end of their paths. */
export function filesNamed(entries: readonly TreeEntry[], frames: readonly string[], max: number): TreeEntry[] {
  const found = new Set<TreeEntry>();
  const byName = Map.groupBy(entries, ({ path }) => path.slice(path.lastIndexOf('/') + 1));
  for (const frame of frames) {
    const wanted = frame.replaceAll('\\', '/').split('/');
    const named = (byName.get(wanted.at(-1)!) ?? []).filter(({ path }) => isPython(path) && isReadable(path));
    const lengths = named.map(({ path }) => common(path.split('/'), wanted));
    const longest = Math.max(0, ...lengths);
    const closest = named.filter((_, i) => lengths[i] === longest);
    // A name that many folders share says nothing by itself.
    if (closest.length > 4) continue;
    for (const entry of closest) if (found.size < max) found.add(entry);
  }
  return [...found];
}

function common(path: readonly string[], frame: readonly string[]): number {
  let length = 0;
  while (length < path.length && length < frame.length && path.at(-1 - length) === frame.at(-1 - length)) length++;
  return length;
}
