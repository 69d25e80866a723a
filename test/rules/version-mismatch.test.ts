import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { pairingOf, TORCH_NPU_RELEASES, torchOf } from '../../src/model/releases.ts';
import { analysePaths } from '../support/grid.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { checkOf, findingOf, reportFor } from '../support/simulated.ts';

const RULE = 'version-mismatch';
const JOB = { ranks: 3, layers: 2, steps: 3 } as const;

describe('quiet', () => {
  test.each([
    { torch: '2.7.1', torchNpu: '2.7.1', cann: '8.3.RC1' },
    { torch: '2.1.0+cpu', torchNpu: '2.1.0.post10+gitabc', cann: '8.0.0' },
    { torchNpu: '2.4.0', cann: '8.0.RC3.beta1' },
    { torchNpu: '2.7.1.post2', cann: '9.0.1' },
  ])('$torchNpu with torch $torch and CANN $cann', async (versions) => {
    expect(checkOf(await reportFor({ ...JOB, versions }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test.each([
    { torchNpu: '2.7.1.post99', cann: '8.3.RC1' },
    { torchNpu: '2.7.1', cann: '8.2.RC1.alpha003' },
    { torchNpu: '2.7.1', cann: '12.0.0' },
    { torchNpu: null, cann: '8.3.RC1' },
    { torchNpu: null, cann: null },
    { torchNpu: 'hostile `version`\n', cann: '8.3.RC1' },
  ])('what is none of a release is not judged: $torchNpu, CANN $cann', async (versions) => {
    expect(checkOf(await reportFor({ ...JOB, versions }), RULE)).toMatchObject({ outcome: 'notApplicable' });
  });
});

describe('loud', () => {
  test('a package for another torch will fail: high', async () => {
    const finding = findingOf(await reportFor({ ...JOB, versions: { torch: '2.6.0+cpu', torchNpu: '2.7.1', cann: '8.3.RC1' } }), RULE)!;
    expect(finding).toMatchObject({ severity: 'high', confidence: 'high', saving: null, ranks: [] });
    expect(finding.title).toMatch(/`2\.7\.1` is made for torch `2\.7\.1`, the run has `2\.6\.0\+cpu`/);
  });

  test('an older CANN is a caution, a newer one information', async () => {
    const older = findingOf(await reportFor({ ...JOB, versions: { torchNpu: '2.7.1.post2', cann: '8.1.RC1' } }), RULE)!;
    expect(older).toMatchObject({ severity: 'medium', confidence: 'medium' });
    expect(older.evidence[0]!.text).toMatch(/came out with CANN `8\.5\.x`, `9\.0\.x`, `9\.1\.x`/);
    const newer = findingOf(await reportFor({ ...JOB, versions: { torchNpu: '2.1.0.post10', cann: '8.3.RC1' } }), RULE)!;
    expect(newer).toMatchObject({ severity: 'info' });
  });

  test('the rank that differs is named', async () => {
    const report = await reportFor({
      ...JOB,
      versions: { torchNpu: '2.7.1', cann: '8.3.RC1' },
      versionsOfRank: { 1: { torchNpu: '2.7.1.post2' } },
    });
    const finding = report.findings.find((f) => f.rule === RULE && /different versions/.test(f.title))!;
    expect(finding).toMatchObject({ severity: 'high', confidence: 'high', ranks: [1] });
    expect(finding.evidence.map((e) => e.text)).toEqual(['rank 0, 2: `2.7.1`', 'rank 1: `2.7.1.post2`']);
  });
});

test('the version a package is made for', () => {
  expect(['2.7.1.post2', '2.7.1rc1', '2.1.0.rc1', '2.6.0.dev20250101', 'abc', ''].map(torchOf)).toEqual([
    '2.7.1',
    '2.7.1',
    '2.1.0',
    '2.6.0',
    null,
    null,
  ]);
});

const TABLE = fileURLToPath(new URL('../../../shared/data/versions.json', import.meta.url));
test.skipIf(!existsSync(TABLE))('every published pair passes, and the table holds no other', () => {
  const { pairs } = JSON.parse(readFileSync(TABLE, 'utf8')) as {
    pairs: { torch_npu_package: string; cann: string; torch_npu_release: string | null }[];
  };
  for (const p of pairs.filter((x) => x.torch_npu_release !== null))
    expect(pairingOf(p.torch_npu_package, p.cann), p.torch_npu_package).toEqual({ outcome: 'released' });
  const published = new Set(pairs.map((p) => `${p.torch_npu_package} ${p.cann}`));
  for (const { packages, cann } of TORCH_NPU_RELEASES) for (const p of packages) expect(published).toContain(`${p} ${cann}`);
});

describe.skipIf(!HAVE_PROFILES)(`real captures${WHY_SKIPPED}`, () => {
  test('st/level2 ran a released pair, the older sets record none', async () => {
    expect(checkOf(await analysePaths([PATHS.st]), RULE)).toMatchObject({ outcome: 'pass' });
    expect(checkOf(await analysePaths([PATHS.level1]), RULE)).toMatchObject({
      outcome: 'notApplicable',
      reason: 'no version is recorded in the profile',
    });
  });
});
