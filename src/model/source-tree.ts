/** Lines of one file that a pull request replaces; between it and the next block at least one line stays. */
export interface ChangeBlock {
  /** Line of the new file, 1-based, at which the added lines begin; where none are added, the line after the removed ones. */
  readonly startLine: number;
  readonly removed: readonly string[];
  readonly added: readonly string[];
}

/** A repository at one commit, as far as it was read, and the lines a pull request touches. Never executed. */
export interface SourceTree {
  /** Paths that can be read, relative to the repository root, with forward slashes. */
  readonly paths: readonly string[];
  /** Text of a file, or null if it is not in the tree, not text, or too large. */
  read(path: string): string | null;
  /** True when every line of the range is on the right-hand side of the pull request's diff. False without a diff. */
  inDiff(path: string, startLine: number, endLine: number): boolean;
  /** What the pull request changes, by path; a file without an entry is untouched. Absent without a diff: then all of it may be looked at. */
  readonly changes?: ReadonlyMap<string, readonly ChangeBlock[]>;
  /** New path by old path of files the pull request renames. */
  readonly renamed?: ReadonlyMap<string, string>;
}
