import type { Edit } from '../../src/model/report.ts';
import type { SourceTree } from '../../src/model/source-tree.ts';
import { applyLineEdit } from '../../src/source/line-edit.ts';
import { sourceTreeFrom } from '../../src/source/source-tree-from.ts';

/** A repository in which every line of the named files is in the diff; without names, of all files. */
export function repository(files: Readonly<Record<string, string>>, inDiff: readonly string[] = Object.keys(files)): SourceTree {
  const patches = inDiff.map((path) => {
    const lines = files[path]!.split('\n');
    return [path, `@@ -0,0 +1,${lines.length} @@\n${lines.map((line) => `+${line}`).join('\n')}`] as const;
  });
  return sourceTreeFrom({ files: Object.entries(files), patches });
}

/** The text of the file after an edit; throws when the edit does not fit. */
export function applied(tree: SourceTree, edit: Edit): string {
  const after = applyLineEdit(tree.read(edit.file)!, edit);
  if (after === null) throw new Error('the edit does not fit the file');
  return after;
}
