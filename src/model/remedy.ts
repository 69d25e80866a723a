import type { CodeSite } from './code.ts';
import type { L10n } from './lang.ts';
import type { Edit, Finding } from './report.ts';
import type { SourceTree } from './source-tree.ts';

/** Hardware generations that differ in what advice is true (docs/dev/hardware.md). null: the profile does not say. */
export type Soc = 'gen-1' | 'A2' | 'A3' | '950' | null;

/** What a remedy may know: the finding, a few facts of the job, and the source when there is one. Never the profile. */
export interface RemedyContext {
  readonly soc: Soc;
  readonly torch: string | null;
  readonly torchNpu: string | null;
  /** Facts a rule hands over, by name (numbers and strings only), e.g. `{ microSteps: 4, iterator: 'single' }`. */
  readonly params: Readonly<Record<string, string | number | boolean | null>>;
  readonly source: SourceTree | null;
  /** Places that the rule found by reading the source itself. */
  readonly sites?: readonly CodeSite[];
}

export interface Advice {
  readonly title: L10n;
  readonly text: L10n;
  readonly code: string | null;
  readonly preconditions: readonly L10n[];
  readonly references: readonly string[];
  readonly edits: readonly Edit[];
  /** Where the change belongs, best first, found in the source. */
  readonly locations: readonly { file: string; line: number; symbol: string | null }[];
}

export interface Remedy {
  readonly id: string;
  readonly title: L10n;
  /** Names of every API, keyword and environment variable the remedy's texts, code and edits may mention. Checked against the allow-list. */
  readonly apis: readonly string[];
  /** Frameworks whose users can follow it; absent: PyTorch only. */
  readonly frameworks?: readonly ('PyTorch' | 'MindSpore')[];
  /** null: this remedy does not apply here (wrong hardware, already done in the source, …). */
  advise(finding: Pick<Finding, 'rule' | 'ranks' | 'locations' | 'confidence'>, context: RemedyContext): Advice | null;
}
