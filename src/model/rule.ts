import type { JobFacts } from '../facts/job/index.ts';
import type { Removals } from '../replay/replay.ts';
import type { Frame } from './capture.ts';
import type { CodeFacts, CodeSite } from './code.ts';
import type { Capability } from './facts.ts';
import type { L10n, Message } from './lang.ts';
import type { Confidence, Severity } from './report.ts';

export type Category = 'data' | 'host' | 'compute' | 'communication' | 'memory' | 'capture' | 'code' | 'comparison';

/** A threshold: default, unit and the reason for its value. Relative to the step first; absolute ones only keep noise out. */
export interface RuleOption {
  readonly default: number;
  readonly unit: 'share' | 'ms' | 'count';
  readonly min: number;
  readonly max: number;
  readonly description: L10n;
  /** Why this value. */
  readonly why: L10n;
}

export type OptionValues<O extends Record<string, RuleOption>> = { readonly [K in keyof O]: number };

export interface RawEvidence {
  readonly message: Message;
  /** File inside the rank folder, e.g. `trace_view.json`; null for figures over several files. */
  readonly file: string | null;
  /** Index into the job's ranks; null for the whole job. */
  readonly rank: number | null;
  readonly step?: number | null;
  /** ns on the rank's clock. */
  readonly start?: number;
  readonly duration?: number;
}

/** What a rule found, before savings are replayed, texts written and findings ranked. */
export interface RawFinding {
  readonly title: Message;
  /** Indices into the job's ranks: where the cause sits. */
  readonly ranks: readonly number[];
  readonly steps: readonly number[];
  readonly groups: readonly string[];
  readonly confidence: Confidence;
  readonly evidence: readonly RawEvidence[];
  readonly caveats: readonly Message[];
  /** What the replay takes out; null when this cause cannot be replayed. */
  readonly removal: { readonly likely: Removals; readonly floor?: Removals; readonly ceiling?: Removals } | null;
  /** The change has a price that the replay does not know: what it gives is an upper bound, never a likely saving. */
  readonly ceilingOnly?: boolean;
  /** Upper bound without replay, ms per step; null for findings that cost no measurable time. */
  readonly boundMs: number | null;
  /** Shown by a reference run instead of the replay, ms per step. */
  readonly measured?: { readonly floor: number; readonly likely: number; readonly ceiling: number };
  readonly boundMethod: Message;
  /** Information: severity info, no saving claimed, exempt from the reporting floor. */
  readonly information: boolean;
  /** Of a finding that costs no measurable time: will crash or changes numbers is high. Ignored where a saving is claimed; info by default. */
  readonly severity?: Exclude<Severity, 'critical'>;
  /** Rule whose finding explains this one, if that rule reports. */
  readonly symptomOf: string | null;
  /** Rules that own the same cause: where one of them reports it, this is its evidence; else it stands for itself. */
  readonly explainedBy?: readonly string[];
  /** Waiting that counts as explained when replaying without the other causes takes most of the skew away. */
  readonly explainedBySkew?: boolean;
  readonly frames: readonly Frame[];
  /** Places that the rule found by reading the source itself. */
  readonly sites?: readonly CodeSite[];
  readonly remedies: readonly { readonly id: string; readonly params: Readonly<Record<string, string | number | boolean | null>> }[];
  /** Stable part of the fingerprint: the place, never a measured number. */
  readonly hotspot: string;
}

export type Detection =
  | { readonly outcome: 'pass'; readonly reason: Message }
  | { readonly outcome: 'findings'; readonly findings: readonly RawFinding[] }
  | { readonly outcome: 'notApplicable'; readonly reason: Message };

export interface Rule<O extends Record<string, RuleOption> = Record<string, RuleOption>> {
  readonly id: string;
  readonly title: L10n;
  readonly category: Category;
  readonly maturity: 'stable' | 'preview';
  /** At least one rank must have all of these, else the rule is not applicable. */
  readonly needs: readonly Capability[];
  readonly options: O;
  readonly remedies: readonly string[];
  /** `code`: what the repository tells; null without one. */
  detect(job: JobFacts, options: OptionValues<O>, code?: CodeFacts | null): Detection;
  /** What the rule can tell of a capture without step marks that lacks some of `needs`; null: nothing, and what it lacks is said. */
  detectWithoutSteps?(job: JobFacts, options: OptionValues<O>): Detection | null;
}

/** Keeps the literal option names, so that `detect` knows them. */
export function defineRule<O extends Record<string, RuleOption>>(rule: Rule<O>): Rule<O> {
  return rule;
}
