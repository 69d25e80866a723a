import type { Said } from '../base/errors.ts';
import type { Lang } from '../model/lang.ts';
import type { Report } from '../model/report.ts';

/**
 * What the renderers need to know. Everything here is plain data: the App fills it in, `renderComment` and
 * `renderCheck` turn it into strings. Texts marked *prose* follow the convention of the report: plain text in
 * `lang`, literals between backticks. Texts marked *literal* are foreign (names of files, artifacts, workflows)
 * and are quoted by the renderer.
 */

/** Addresses on the code host. Only http(s) addresses are ever rendered as links. */
export interface RepositoryLinks {
  /** Page of the repository that holds `sha` (a fork's own page for a fork), e.g. `https://github.com/o/r`; null: no code links. */
  readonly htmlBase: string | null;
  /** Where the full report can be read (check run page, artifact or our own page); null: nowhere. */
  readonly report: string | null;
}

/** A workflow run on the code host. */
export interface WorkflowRef {
  /** *literal*, the workflow's name. */
  readonly name: string;
  readonly url: string | null;
}

/** A finding of the comment before this one, enough to say that it is gone. */
export interface PreviousFinding {
  readonly id: string;
  /** *prose*, in the language it was written in. */
  readonly title: string;
  readonly saving: { readonly likely: number | null; readonly ceiling: number } | null;
}

/** What the repository wants when no usable profile arrives. */
export type OnMissing = 'neutral' | 'failure' | 'skipped';

/** Why there is nothing to analyse. */
export type NoProfileReason =
  /** The workflow ended; none of its artifacts has a matching name. */
  | { readonly kind: 'no-match'; readonly uploaded: readonly string[] }
  /** No matching workflow run ended in time. */
  | { readonly kind: 'no-run'; readonly deadlineMinutes: number | null }
  /** The artifact was there but the host has deleted it. */
  | { readonly kind: 'expired'; readonly artifact: string; readonly expiredAt: string | null }
  /** The artifact is no archive or is damaged. `detail` is *prose*. */
  | { readonly kind: 'corrupt'; readonly artifact: string; readonly detail: Said }
  /** The artifact is larger than this installation accepts. */
  | { readonly kind: 'too-large'; readonly artifact: string; readonly bytes: number; readonly limitBytes: number }
  /** The archive can be read but holds no profile. `detail` is *prose*: what it holds instead and what to do. */
  | { readonly kind: 'no-profile-inside'; readonly artifact: string; readonly detail?: string };

interface CommentBase {
  readonly lang: Lang;
  /** Slug of the GitHub App, part of the marker. */
  readonly appSlug: string;
  readonly pr: number;
  /** Commit the comment speaks about, 40 hex digits. */
  readonly sha: string;
  readonly links: RepositoryLinks;
  /** Nobody listens to commands: a workflow has written this, not the App. */
  readonly isServerless?: true;
}

/** A report was made. */
export interface ReportComment extends CommentBase {
  readonly state: 'report';
  readonly report: Report;
  /** Hash of the report, for the state line. */
  readonly reportHash: string;
  /** Address of the posted review suggestion, by finding id. */
  readonly suggestions: Readonly<Record<string, string>>;
  /** Findings the comment showed before; those that are gone are listed as fixed. */
  readonly previous: readonly PreviousFinding[];
  /** True when comparing to base is configured and there is no base profile yet. */
  readonly baselineMissing: boolean;
  /** True when the profile was produced by a fork's workflow run, so its figures are a claim. */
  readonly fromFork: boolean;
  /** A newer commit whose analysis is under way; the figures stay those of `sha`. */
  readonly pendingSha: string | null;
}

/** Waiting for the workflow, or reading its profile. */
export interface RunningComment extends CommentBase {
  readonly state: 'running';
  readonly phase: 'waiting' | 'analysing';
  readonly workflow: WorkflowRef | null;
  /** How far long work is. */
  readonly progress?: RunningProgress;
}

/** How far an analysis is. */
export interface RunningProgress {
  readonly step: RunningStep;
  /** When it began and when this was said, epoch milliseconds. */
  readonly since: number;
  readonly now: number;
}

export type RunningStep =
  | { readonly kind: 'queue' }
  | { readonly kind: 'download'; readonly bytes: Count }
  | { readonly kind: 'read'; readonly bytes: Count; readonly ranks: Count }
  | { readonly kind: 'diagnose' };

interface Count {
  readonly done: number;
  readonly total: number;
}

/** Nothing to analyse. */
export interface NoProfileComment extends CommentBase {
  readonly state: 'no-profile';
  readonly reason: NoProfileReason;
  readonly workflow: WorkflowRef | null;
  /** Patterns of artifact names that are read, *literal*, e.g. `npu-profile*`. */
  readonly patterns: readonly string[];
  readonly onMissing: OnMissing;
}

/** The analysis itself failed. */
export interface ErrorComment extends CommentBase {
  readonly state: 'error';
  /** *prose*, one sentence without a stack trace. */
  readonly reason: string;
  /** *prose*, what to do; null when nothing can be done by the reader. */
  readonly hint: string | null;
  /** Finds the case in the operator's log. */
  readonly correlationId: string | null;
}

/** One thing wrong with a settings file, in the language of the reader. */
export interface ConfigProblemView {
  readonly file: string;
  readonly line: number | null;
  readonly column: number | null;
  readonly endColumn: number | null;
  /** *prose* */
  readonly message: string;
  /** Another file cannot be read from here, which need not be a mistake. */
  readonly isOutOfReach: boolean;
}

/** The configuration on the base branch cannot be used. */
export interface ConfigInvalidComment extends CommentBase {
  readonly state: 'config-invalid';
  readonly file: string;
  readonly problems: readonly (Pick<ConfigProblemView, 'line' | 'message'> & Partial<ConfigProblemView>)[];
}

/** Everything the sticky comment of a pull request may say. */
export type CommentView = ReportComment | RunningComment | NoProfileComment | ErrorComment | ConfigInvalidComment;

/** Several training jobs of one repository, each with its own report or the reason why there is none. */
export interface JobsComment extends CommentBase {
  readonly state: 'jobs';
  readonly reportHash: string;
  /** In the order of the settings. `name` is *literal*. */
  readonly jobs: readonly { readonly name: string; readonly view: CommentView }[];
  /** Jobs whose files the pull request does not change, *literal*. */
  readonly untouched: readonly string[];
}

/** The check run says the same as the comment, and what the comment leaves out. */
export interface CheckView {
  readonly comment: CommentView;
  /** True for a line that exists at head in a file of the repository that may carry an annotation. */
  readonly annotatable: (path: string, line: number) => boolean;
}

export type AnnotationLevel = 'failure' | 'warning' | 'notice';

/** One annotation in GitHub's own field names. */
export interface CheckAnnotation {
  readonly path: string;
  readonly start_line: number;
  readonly end_line: number;
  readonly annotation_level: AnnotationLevel;
  /** Only where start and end are one line. */
  readonly start_column?: number;
  readonly end_column?: number;
  readonly title: string;
  readonly message: string;
  readonly raw_details: string;
}

export type CheckConclusion = 'success' | 'failure' | 'neutral' | 'skipped' | 'action_required';

/** A check run without its address. `conclusion` is null while `status` is `in_progress`. */
export interface RenderedCheck {
  readonly status: 'in_progress' | 'completed';
  readonly conclusion: CheckConclusion | null;
  readonly title: string;
  readonly summary: string;
  readonly text: string;
  readonly annotations: readonly CheckAnnotation[];
}

/** Where a review comment comes from: its cause's number in the summary comment and the address of that comment. */
export interface SummaryPlace {
  readonly number: number;
  readonly url: string | null;
}

/** How the terminal shows the report. */
export interface TextStyle {
  readonly color: boolean;
  /** Columns of the terminal. */
  readonly width: number;
}
