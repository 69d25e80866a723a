import { describe, expect, it } from 'vitest';
import { createBudget, slotsFor } from '../../src/app/jobs/budget.ts';

/** Starts pieces of work that go on until they are ended; says which run. */
function start(slots: number, freeDisk: () => number) {
  const slot = createBudget({ slots, freeDisk: async () => freeDisk() });
  const running: string[] = [];
  const ends = new Map<string, () => void>();
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    async add(name: string, diskBytes: number): Promise<string[]> {
      const { promise, resolve } = Promise.withResolvers<void>();
      ends.set(name, resolve);
      void slot(
        async () => {
          running.push(name);
          await promise;
          running.splice(running.indexOf(name), 1);
        },
        { diskBytes },
      );
      await settle();
      return [...running];
    },
    async end(name: string): Promise<string[]> {
      ends.get(name)!();
      await settle();
      return [...running];
    },
  };
}

describe('the budget of a worker', () => {
  it('starts no more than its slots', async () => {
    const work = start(2, () => 1e12);
    await work.add('a', 1);
    await work.add('b', 1);
    expect(await work.add('c', 1)).toEqual(['a', 'b']);
    expect(await work.end('a')).toEqual(['b', 'c']);
  });

  it('starts no more than its disk holds, in turn', async () => {
    const work = start(4, () => 100);
    await work.add('a', 60);
    expect(await work.add('b', 50)).toEqual(['a']);
    // It would fit, but the other came first.
    expect(await work.add('c', 10)).toEqual(['a']);
    expect(await work.end('a')).toEqual(['b', 'c']);
  });

  it('runs alone what is larger than the disk, and goes on afterwards', async () => {
    const work = start(4, () => 100);
    expect(await work.add('a', 1000)).toEqual(['a']);
    expect(await work.add('b', 1)).toEqual(['a']);
    expect(await work.end('a')).toEqual(['b']);
  });

  it('gives what a failed piece of work held back', async () => {
    const slot = createBudget({ slots: 1, freeDisk: async () => 0 });
    await expect(slot(() => Promise.reject(new Error('no')), { diskBytes: 9 })).rejects.toThrow('no');
    expect(await slot(async () => 'yes', { diskBytes: 9 })).toBe('yes');
  });

  it('counts the analyses that fit into the memory, one at least', () => {
    expect([slotsFor(4, 4096, 16_384), slotsFor(4, 4096, 9000), slotsFor(4, 4096, 1000), slotsFor(1, 64, 1e6)]).toEqual([4, 2, 1, 1]);
  });
});
