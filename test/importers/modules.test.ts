/* Forward calls of modules, from real captures of both exports: AlexNet tells by itself how often each class is called. */
import { describe, expect, test } from 'vitest';
import { isModule, moduleClass } from '../../src/importers/module-calls.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { factsOf } from '../support/simulated.ts';

test.each([
  ['nn.Module: Linear_12', 'Linear'],
  ['nn.Module: Conv2d_0', 'Conv2d'],
  ['nn.Module: Encoder', 'Encoder'],
  ['train.py(10): nn.Module: Linear', null],
  ['nn.Module', null],
])('%s is %s', (name, is) => {
  expect(moduleClass(name)).toBe(is);
  const bytes = Buffer.from(`"${name}"`);
  expect(isModule(bytes, 1, bytes.length - 1)).toBe(is !== null);
});

const DB = PATHS.level1.replace('/text/', '/db/');

describe.skipIf(!HAVE_PROFILES)(`a real AlexNet${WHY_SKIPPED}`, () => {
  test.each([
    ['text, Level0', PATHS.level0],
    ['text, Level1', PATHS.level1],
    ['databases', DB],
  ])('%s', async (_, path) => {
    for (const rank of await factsOf(path)) {
      const of = (name: string) => rank.modules.find((m) => m.name === name)!;
      const calls = ['AlexNet', 'Conv2d', 'Linear', 'ReLU', 'MaxPool2d', 'Dropout', 'Sequential'].map((name) => of(name).calls);
      expect(calls).toEqual([1, 5, 3, 7, 3, 2, 2]);
      // What lies inside another takes no longer than that.
      const parts = ['Conv2d', 'Linear', 'ReLU', 'MaxPool2d', 'Dropout', 'AdaptiveAvgPool2d'].reduce((sum, name) => sum + of(name).ns, 0);
      expect(parts).toBeGreaterThan(0.95 * of('AlexNet').ns);
      expect(parts).toBeLessThanOrEqual(of('AlexNet').ns);
    }
  });
});
