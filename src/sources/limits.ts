/** Bounds on what is read from strangers. Bytes unless said otherwise. */
export interface SourceLimits {
  readonly maxEntries: number;
  readonly maxEntryBytes: number;
  readonly maxTotalBytes: number;
  readonly maxNameLength: number;
  /** Folder depth below the root that is searched. */
  readonly maxDepth: number;
}

export const DEFAULT_LIMITS: SourceLimits = {
  maxEntries: 200_000,
  maxEntryBytes: 64 * 2 ** 30,
  maxTotalBytes: 512 * 2 ** 30,
  maxNameLength: 1_024,
  maxDepth: 12,
};
