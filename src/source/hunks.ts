/** Lines of the new file that one hunk of a diff shows (added and context), 1-based and inclusive. */
export interface Hunk {
  readonly startLine: number;
  readonly endLine: number;
}

const HEADER = /^@@ -\d{1,9}(?:,\d{1,9})? \+(\d{1,9})(?:,(\d{1,9}))? @@/;

/**
 * Reads the `patch` text GitHub gives for one file. The right-hand lines of a hunk are contiguous. A hunk without
 * right-hand lines (pure deletion at the file's start) is left out; a cut patch counts as far as it goes.
 */
export function hunksOf(patch: string): Hunk[] {
  const hunks: Hunk[] = [];
  let next = 0;
  let left = 0;
  let start = 0;
  const close = (): void => {
    if (next > start) hunks.push({ startLine: start, endLine: next - 1 });
    next = start = left = 0;
  };
  const lines = patch.split('\n');
  for (const [i, line] of lines.entries()) {
    const header = HEADER.exec(line);
    if (header) {
      close();
      start = next = Number(header[1]);
      left = header[2] === undefined ? 1 : Number(header[2]);
      continue;
    }
    // An empty context line may have lost its leading blank on the way.
    const isBlank = line === '' && i < lines.length - 1;
    const isRight = line.startsWith('+') || line.startsWith(' ') || isBlank;
    if (!isRight || left === 0) continue;
    next++;
    left--;
  }
  close();
  return hunks;
}

/** The right-hand lines of a patch, as a set. */
export function rightLinesOf(patch: string): Set<number> {
  const lines = new Set<number>();
  for (const hunk of hunksOf(patch)) for (let line = hunk.startLine; line <= hunk.endLine; line++) lines.add(line);
  return lines;
}

/** A suggestion must lie inside one hunk; GitHub refuses a range that spans two. */
export function isInsideOneHunk(hunks: readonly Hunk[], startLine: number, endLine: number): boolean {
  if (startLine < 1 || endLine < startLine) return false;
  return hunks.some((hunk) => hunk.startLine <= startLine && endLine <= hunk.endLine);
}
