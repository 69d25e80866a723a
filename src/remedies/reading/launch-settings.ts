import type { SourceTree } from '../../model/source-tree.ts';
import { isInsideComment } from '../../source/comment-lines.ts';
import type { LineEdit } from '../../source/line-edit.ts';
import { isAside } from '../../source/readable-paths.ts';

/** One line that sets an environment variable: shell, workflow, Dockerfile or Python. */
export interface Setting {
  readonly file: string;
  readonly line: number;
  readonly value: string;
  readonly text: string;
  /** Offset of the value in the line. */
  readonly column: number;
}

/** Longer lines are data, not settings. */
const MAX_LINE = 500;

/** Lines that set the variable to a plain word or number, in the order of the tree. Debug files are left out. */
export function settingsOf(tree: SourceTree, variable: string): Setting[] {
  const assigned = new RegExp(`\\b${variable}["'\\]]*\\s*[=:]\\s*["']?([\\w.-]+)`);
  const defaulted = new RegExp(`\\bsetdefault\\(\\s*["']${variable}["']\\s*,\\s*["']?([\\w.-]+)`);
  const settings: Setting[] = [];
  for (const file of tree.paths) {
    if (isAside(file) || /debug/i.test(file)) continue;
    const text = tree.read(file);
    if (text === null || !text.includes(variable)) continue;
    for (const [i, line] of text.split('\n').entries()) {
      if (line.length > MAX_LINE || isInsideComment(line, variable) || /debug/i.test(line)) continue;
      const match = assigned.exec(line) ?? defaulted.exec(line);
      if (match)
        settings.push({ file, line: i + 1, value: match[1]!, text: line, column: match.index + match[0].length - match[1]!.length });
    }
  }
  return settings;
}

/** The same line with another value. */
export function withValue(setting: Setting, value: string): LineEdit {
  const { file, line, text, column } = setting;
  const after = text.slice(0, column) + value + text.slice(column + setting.value.length);
  return { file, startLine: line, endLine: line, before: text, after };
}
