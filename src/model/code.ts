import type { Confidence, Edit, Severity } from './report.ts';

/** What code may do that is wrong on an NPU. */
export const MIGRATION_KINDS = [
  'unknown-name',
  'unknown-keyword',
  'removed-name',
  'deprecated-name',
  'nccl-backend',
  'data-parallel',
  'global-rank',
  'profiler-without-step',
  'foreign-profiler',
  'unequal-rewrite',
  'inverted-argument',
  'tuple-result',
  'fp16-without-scaler',
  'fused-optimizer-with-scaler',
  'gradients-set-to-none',
  'private-format',
  'script-disabled',
  'no-such-method',
  'unknown-package',
  'torch-pair',
  'cann-pair',
  'unknown-variable',
  'debug-setting',
] as const;
export type MigrationKind = (typeof MIGRATION_KINDS)[number];

/** A place in the repository, with the change that settles it where there is exactly one. */
export interface CodeSite {
  readonly file: string;
  readonly startLine: number;
  readonly endLine: number;
  /** The function around it. */
  readonly symbol: string | null;
  /** The first line, cut. */
  readonly text: string;
  readonly edit: Omit<Edit, 'kind'> | null;
}

/** One thing in the code, at one place. */
export interface Occurrence {
  readonly kind: MigrationKind;
  /** What is wrong, as the code or the file says it. */
  readonly name: string;
  /** What does the job instead. */
  readonly replacement: string | null;
  readonly confidence: Confidence;
  /** Where the kind alone does not settle it. */
  readonly severity?: Exclude<Severity, 'critical'>;
  /** Further words for the text. */
  readonly params?: Readonly<Record<string, string>>;
  readonly site: CodeSite;
}

/** A line that sets an environment variable to a literal value. */
export interface CodeSetting {
  readonly name: string;
  readonly value: string;
  readonly file: string;
  readonly line: number;
  /** Holds only where the caller has not set the variable. */
  readonly isDefault: boolean;
  /** On a line that the pull request adds; true everywhere without a diff. */
  readonly isChanged: boolean;
}

/** What the repository tells. Read when first asked for; nothing of it is run. */
export interface CodeFacts {
  /** With a diff: only what the pull request changes. */
  readonly migration: {
    readonly occurrences: readonly Occurrence[];
    /** Files that were looked into, and those that speak to NPUs among them. */
    readonly files: number;
    readonly npuFiles: number;
    /** Files that may hold something and could not be looked into: a syntax error, or too much. */
    readonly unread: number;
    /** Only changed lines were looked at. */
    readonly isDiff: boolean;
  };
  /** The one version of a package that the repository asks for exactly; null: none, or several. */
  readonly versions: { readonly torch: string | null; readonly torchNpu: string | null };
  /** Settings of a variable in scripts, images and workflows, in the order of the files; those for debugging left out. */
  settings(variable: string): readonly CodeSetting[];
  /** The same, of each file that the pull request changes (of all files without a diff). */
  readonly changedSettings: readonly (readonly CodeSetting[])[];
}
