import type { Acknowledgement, ShownFinding } from '../model/acknowledgement.ts';
import type { L10n, Lang } from '../model/lang.ts';
import type { Report } from '../model/report.ts';

/**
 * Who may use a command. `author-or-write`: the pull request's author, or anyone who may write to the repository. `write`: only the latter;
 * what decides on a gate is not for the author of the change.
 */
export type CommandPermission = 'anyone' | 'author-or-write' | 'write';

/** What `status` can say about a commit. */
export interface StatusFacts {
  readonly check: { readonly phase: 'queued' | 'in_progress' | 'completed'; readonly conclusion: string | null } | null;
  /** Verdict of the newest report of the commit, prose. */
  readonly verdict: string | null;
  readonly pending: number;
  readonly deadlineAt: number | null;
  readonly patterns: readonly string[];
  /** Finished runs of the commit and whether one of their artifacts matches. */
  readonly runs: readonly {
    readonly name: string;
    readonly completed: boolean;
    readonly matching: number;
    readonly uploaded: number;
    readonly ignoredBecause: string | null;
  }[];
  readonly acknowledged: readonly StandingAcknowledgement[];
}

/** An acknowledgement of the pull request and how it stands. */
export interface StandingAcknowledgement extends Acknowledgement {
  readonly state: 'holds' | 'grown' | 'ended' | 'absent';
}

/** A rule as `explain` shows it. */
export interface RuleFacts {
  readonly id: string;
  readonly title: L10n;
  readonly isPreview: boolean;
  readonly isDisabled: boolean;
  readonly options: readonly {
    readonly name: string;
    readonly value: number;
    readonly isDefault: boolean;
    readonly unit: string;
    readonly description: L10n;
  }[];
  readonly remedies: readonly L10n[];
  /** What the last report of the pull request says of it; null: there is none. */
  readonly outcome: { readonly outcome: Report['checked'][number]['outcome']; readonly reason: string } | null;
}

/** What a commit was compared with on request. */
export interface ComparedBase {
  readonly sha: string;
  /** Branch, tag or commit as it was asked for. */
  readonly asked: string;
  /** How many commits before the one asked for; 0: that one itself. */
  readonly commitsBefore: number;
  readonly ageMs: number;
}

/** The settings in force, key by key, and the file each comes from; null: nobody sets it. */
export interface SettingsFacts {
  readonly file: string;
  readonly ref: string;
  readonly keys: readonly {
    readonly key: string;
    readonly value: unknown;
    readonly from: string | null;
    /** Not everybody who can read the pull request may read that file. */
    readonly isHidden: boolean;
  }[];
}

/** One upload a person points at, instead of whatever the head commit has. */
export interface Wanted {
  readonly runId: number | null;
  /** `owner/name` of the address it was copied from. */
  readonly repository: string | null;
  readonly artifact: { readonly id: number } | { readonly name: string } | null;
  /** Address of a file attached to a comment. */
  readonly attachment?: string | undefined;
}

/** The only things a command can do. */
export interface CommandClient {
  /** Answers with a comment; the same command answers once even when it runs again after a crash. */
  reply(text: string): Promise<void>;
  /**
   * Asks for an analysis of `headSha`; the reaction that ends the command follows when it is done. A text says why `wanted` cannot be
   * analysed: then nothing was asked for.
   */
  requestAnalysis(headSha: string, wanted: Wanted | null): Promise<L10n | null>;
  status(headSha: string): Promise<StatusFacts>;
  /** What the newest published report of the pull request shows; null: none was published yet. */
  shown(): Promise<readonly ShownFinding[] | null>;
  /** Why numbers and `all` cannot be taken for what was shown when the command was written; null: they can. */
  shownSince(): Promise<L10n | null>;
  acknowledgements(): Promise<readonly Acknowledgement[]>;
  /** Remembers it and has comment and check say so; the reaction that ends the command follows when they do. */
  acknowledge(findings: readonly ShownFinding[], given: { readonly reason: string; readonly until: string | null }): Promise<void>;
  takeBack(findings: readonly string[]): Promise<void>;
  /** The newest report of the pull request that holds a finding. */
  reportOf(finding: string): Promise<Report | null>;
  rules(): readonly string[];
  rule(id: string): Promise<RuleFacts | null>;
  /** Asks for the review with the changes; a text says why there is nothing to post. */
  suggest(headSha: string): Promise<L10n | null>;
  settings(): Promise<SettingsFacts | L10n>;
  /** Kept facts of the head against those of another commit; `ref` null: the base branch, `job` null: the only one. */
  compare(
    headSha: string,
    ref: string | null,
    job: string | null,
  ): Promise<{ readonly report: Report; readonly base: ComparedBase } | { readonly problem: L10n }>;
}

export interface CommandContext<Args> {
  readonly lang: Lang;
  readonly actor: string;
  /** Head of the pull request when the command was received. A later push does not change what the command means. */
  readonly headSha: string;
  /** UTC day, `2026-11-30`. */
  readonly today: string;
  readonly args: Args;
  readonly client: CommandClient;
}

/** `done`: finished now. `started`: goes on in the background. `refused`: could not be understood or is not possible. */
export type CommandResult = 'done' | 'started' | 'refused';

export interface Command<Args = unknown> {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly usage: string;
  readonly description: L10n;
  readonly permission: CommandPermission;
  readonly examples: readonly string[];
  parse(args: readonly string[]): { readonly ok: true; readonly args: Args } | { readonly ok: false; readonly problem: L10n };
  handle(context: CommandContext<Args>): Promise<CommandResult>;
}

/** Lets the compiler check a command against its own arguments and hides them from the table. */
export function defineCommand<Args>(command: Command<Args>): Command {
  return command as Command;
}
