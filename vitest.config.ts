import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Tests of the App wait more than they compute.
    maxWorkers: 3,
    // Servers and threads that the tests start load the same modules again and again.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules', '.cache', 'compile') },
    reporters: process.env.CI ? ['default', ['json', { outputFile: 'coverage/vitest.json' }]] : ['default'],
  },
});
