import type { RemedyContext } from '../../../src/model/remedy.ts';
import type { Edit } from '../../../src/model/report.ts';

export type Kind = Edit['kind'];

/**
 * One row: what is written, what is to be written, and how it is offered. null: nothing is changed. Both texts stand behind the set's
 * prelude in `train.py`.
 */
export type Row = readonly [
  name: string,
  before: string,
  after: string | null,
  /** Of all edits, or of each of them from the top. */
  kind?: Kind | readonly Kind[] | undefined,
  over?: Over,
];

export interface Over {
  readonly params?: RemedyContext['params'];
  readonly soc?: RemedyContext['soc'];
  readonly torch?: string | null;
  /** Other files of the repository. */
  readonly files?: Readonly<Record<string, string>>;
  /** The file's own name; `train.py` by default. */
  readonly file?: string;
  /** Lines of the file that the profile's stacks name, counted from the line after the prelude. */
  readonly lines?: readonly number[];
  readonly confidence?: 'high' | 'medium' | 'low';
  /** Nothing of the repository is in the diff. */
  readonly outsideDiff?: boolean;
}

export interface PairSet {
  readonly pattern: string;
  readonly remedy: string;
  readonly prelude: string;
  readonly over: Over;
  readonly rows: readonly Row[];
}
