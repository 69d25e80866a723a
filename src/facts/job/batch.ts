import type { RankFacts } from '../../model/facts.ts';

/** How much one step trains, as far as it is recorded or configured. */
export interface Batch {
  readonly samplesPerStep: number | null;
  readonly tokensPerSample: number | null;
  readonly basis: 'profile' | 'config' | null;
}

/** What the repository's configuration says of the job. */
export interface GivenBatch {
  readonly globalBatchSize: number | null;
  readonly sequenceLength: number | null;
}

/**
 * Trainer arguments of profiler_metadata.json (Megatron's names) tell what ran and go before the configuration. Neither the micro-batch size
 * nor input shapes are used: how many micro-batches a step has is in no file, and ranks of one tensor parallel group hold the same samples.
 */
export function batchOf(ranks: readonly RankFacts[], given: GivenBatch | null): Batch {
  const argument = (name: string): number | null => {
    for (const rank of ranks) {
      const value = rank.parallel[name];
      if (value !== undefined && value > 0) return value;
    }
    return null;
  };
  const recorded = argument('global_batch_size');
  const samplesPerStep = recorded ?? given?.globalBatchSize ?? null;
  return {
    samplesPerStep,
    tokensPerSample: argument('seq_length') ?? given?.sequenceLength ?? null,
    basis: recorded !== null ? 'profile' : samplesPerStep === null ? null : 'config',
  };
}
