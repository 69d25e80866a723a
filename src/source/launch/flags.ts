import type { SourceTree } from '../../model/source-tree.ts';
import { isInsideComment } from '../comment-lines.ts';
import type { SourcePlace } from '../options.ts';
import { isAside, isPython } from '../readable-paths.ts';

/** A command line in a launch script, workflow or Dockerfile that passes an option. */
export interface FlagUse extends SourcePlace {
  /** As written; null when it is a variable, or when the option stands alone. */
  readonly value: string | null;
  readonly text: string;
}

const MAX_LINE = 2_000;
const MAX_USES = 16;

/** Where a flag such as `--num-workers` is passed, `--flag value` or `--flag=value`, outside Python, tests and comments. */
export function flagUses(tree: SourceTree, flag: string): FlagUse[] {
  if (!/^-{1,2}[\w-]{1,80}$/.test(flag)) return [];
  const passed = new RegExp(`(?<![\\w-])${flag}(?![\\w-])(?:=|[ \\t]+)?(?:"([^"]*)"|'([^']*)'|([^\\s"'\\\\;|&]*))`);
  const uses: FlagUse[] = [];
  for (const file of tree.paths) {
    if (isPython(file) || isAside(file)) continue;
    const text = tree.read(file);
    if (text === null || !text.includes(flag)) continue;
    for (const [i, line] of text.split('\n').entries()) {
      if (line.length > MAX_LINE || isInsideComment(line, flag)) continue;
      const match = passed.exec(line);
      if (match === null) continue;
      const word = match[1] ?? match[2] ?? match[3] ?? '';
      const value = word === '' || word.includes('$') || word.startsWith('-') ? null : word;
      uses.push({ file, line: i + 1, value, text: line });
      if (uses.length >= MAX_USES) return uses;
    }
  }
  return uses;
}
