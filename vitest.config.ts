import { join, relative } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Longest first. A fresh clone remembers no durations, and vitest then goes by the size of the files; these take far longer than theirs says. */
const LONG = ['app/kill', 'app/flow', 'rules/grid', 'app/citizen', 'app/reconcile', 'render/html-charts', 'render/html'];

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = LONG.indexOf(relative(join(import.meta.dirname, 'test'), moduleId).replace(/\.test\.ts$/, ''));
      return at === -1 ? LONG.length : at;
    };
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b));
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Tests of the App wait more than they compute.
    maxWorkers: 3,
    sequence: { sequencer: LongFirst },
    // Servers and threads that the tests start load the same modules again and again.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules', '.cache', 'compile') },
    reporters: process.env.CI ? ['default', ['json', { outputFile: 'coverage/vitest.json' }]] : ['default'],
  },
});
