/** One repeatable measurement. It prints its own table; figures of a shared machine are medians with their spread. */
export interface Bench {
  readonly name: string;
  readonly about: string;
  run(options: BenchOptions): Promise<void>;
}

export interface BenchOptions {
  /** Rough time for the whole bench; sizes follow from it unless they are given. */
  readonly seconds: number;
  /** Folder for inputs, kept from run to run. */
  readonly dir: string;
  readonly runs: number;
  /** Size of one rank's trace or table, MB; null: as the time allows. */
  readonly mb: number | null;
  readonly ranks: number | null;
}
