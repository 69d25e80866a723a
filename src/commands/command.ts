import type { L10n, Lang } from '../model/lang.ts';

/** Who may use a command. `author-or-write`: the pull request's author, or anyone who may write to the repository. */
export type CommandPermission = 'anyone' | 'author-or-write';

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
}

/** One upload a person points at, instead of whatever the head commit has. */
export interface Wanted {
  readonly runId: number | null;
  /** `owner/name` of the address it was copied from. */
  readonly repository: string | null;
  readonly artifact: { readonly id: number } | { readonly name: string } | null;
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
}

export interface CommandContext<Args> {
  readonly lang: Lang;
  readonly actor: string;
  /** Head of the pull request when the command was received. A later push does not change what the command means. */
  readonly headSha: string;
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
