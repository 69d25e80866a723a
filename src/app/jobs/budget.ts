/** What one piece of work may need at most. */
export interface Need {
  readonly diskBytes: number;
}

/** Of artifacts that are fetched: as if all of them were. */
export function needOf(artifacts: readonly { readonly bytes: number }[]): Need {
  return { diskBytes: artifacts.reduce((sum, { bytes }) => sum + bytes, 0) };
}

/** What the work of this process may take, all together. */
export interface Budget {
  /** Pieces of work at the same time. */
  readonly slots: number;
  /** Bytes for downloads, beside what those that run have been promised. */
  freeDisk(): Promise<number>;
}

/** So many analyses fit into the memory beside the process itself; at least one, which then ends with a clear sentence if it does not. */
export function slotsFor(analyses: number, analysisMemoryMb: number, memoryMb: number): number {
  return Math.max(1, Math.min(analyses, Math.floor(memoryMb / analysisMemoryMb)));
}

/**
 * Lets work start while slots and disk allow, first come first served: a large job is not overtaken for ever by small ones. What is
 * larger than the budget runs alone, since a need is the most it may come to.
 */
export function createBudget({ slots, freeDisk }: Budget): <T>(body: () => Promise<T>, need?: Need) => Promise<T> {
  let running = 0;
  let promised = 0;
  let turn: Promise<unknown> = Promise.resolve();
  let ended = Promise.withResolvers<void>();

  async function fits(bytes: number): Promise<boolean> {
    if (running === 0) return true;
    // Nothing of what was promised may have been written yet.
    return running < slots && bytes <= (await freeDisk()) - promised;
  }
  async function admit(bytes: number): Promise<void> {
    for (;;) {
      const next = ended.promise;
      if (await fits(bytes)) break;
      await next;
    }
    running++;
    promised += bytes;
  }

  return async (body, { diskBytes } = { diskBytes: 0 }) => {
    const admitted = turn.then(() => admit(diskBytes));
    turn = admitted.catch(() => undefined);
    await admitted;
    try {
      return await body();
    } finally {
      running--;
      promised -= diskBytes;
      ended.resolve();
      ended = Promise.withResolvers<void>();
    }
  };
}
