/** A repository at one commit, as far as it was read, and the lines a pull request touches. Never executed. */
export interface SourceTree {
  /** Paths that can be read, relative to the repository root, with forward slashes. */
  readonly paths: readonly string[];
  /** Text of a file, or null if it is not in the tree, not text, or too large. */
  read(path: string): string | null;
  /** True when every line of the range is on the right-hand side of the pull request's diff. False without a diff. */
  inDiff(path: string, startLine: number, endLine: number): boolean;
}
