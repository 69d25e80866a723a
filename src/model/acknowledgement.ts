/** What a person has accepted on a pull request. Held by the finding's fingerprint, so it outlives pushes. */
export interface Acknowledgement {
  /** Fingerprint of a finding, or `REGRESSION`. */
  readonly finding: string;
  readonly rule: string;
  /** Title at that time, prose in the language of the report. */
  readonly title: string;
  /** Login of the person. */
  readonly by: string;
  /** When, epoch milliseconds, and for which commit. */
  readonly at: number;
  readonly sha: string;
  /** Last day it holds, UTC, `2027-01-31`; null: until the cost grows. */
  readonly until: string | null;
  /** As written; foreign text. */
  readonly reason: string;
  /** Saving per step at that time, ms; null: the finding cost no measurable time. */
  readonly saving: { readonly likely: number | null; readonly ceiling: number } | null;
}

/** Stands for the step being slower than the baseline, whatever the cause. */
export const REGRESSION = 'regression';

/** The cost of what was acknowledged may grow by this share, or by the noise of the step if that is more, before it comes back. */
export const GROWTH_SHARE = 0.1;

/** A finding as the newest published report of a pull request shows it, with what is needed to name it and to accept it. */
export interface ShownFinding {
  readonly id: string;
  readonly rule: string;
  /** Number in the summary comment. null: it has none, as the regression itself. */
  readonly number: number | null;
  /** Prose in the language of the report. */
  readonly title: string;
  readonly saving: { readonly likely: number | null; readonly ceiling: number } | null;
  /** `part`: another finding explains it. `info`: it wants nothing. */
  readonly state: 'open' | 'acknowledged' | 'muted' | 'part' | 'info';
  /** Lines a one-click change would replace. */
  readonly change: { readonly path: string; readonly startLine: number; readonly endLine: number } | null;
}
