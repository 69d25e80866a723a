import type { ChangeBlock } from '../model/source-tree.ts';

const HEADER = /^@@ -\d{1,9}(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@/;

/** What a patch takes out and puts in, block by block: lines between two unchanged ones. Text before the first header counts for nothing. */
export function changeBlocksOf(patch: string): ChangeBlock[] {
  const blocks: ChangeBlock[] = [];
  let next = 0;
  let removed: string[] = [];
  let added: string[] = [];
  const close = (): void => {
    if (removed.length + added.length > 0) blocks.push({ startLine: next - added.length, removed, added });
    removed = [];
    added = [];
  };
  for (const line of patch.split('\n')) {
    const header = HEADER.exec(line);
    if (header) {
      close();
      next = Number(header[1]);
    } else if (next === 0 || line.startsWith('\\')) {
    } else if (line.startsWith('-')) {
      removed.push(line.slice(1));
    } else if (line.startsWith('+')) {
      added.push(line.slice(1));
      next++;
    } else {
      close();
      next++;
    }
  }
  close();
  return blocks;
}
