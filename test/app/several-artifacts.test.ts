/* One job whose ranks come in several artifacts, as each node of a cluster uploads its own: read by the real analyser, end to end. */
import { mkdtempSync, rmSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunHandle } from '../../lab/loopback-github/index.ts';
import type { Fault, JobSpec } from '../../lab/simulator/index.ts';
import { simulate, writeProfiles } from '../../lab/simulator/index.ts';
import { createWorld, isConcluded, openPull, until, untilQuiet, type World } from './support/world.ts';
import { makeZip } from './support/zip.ts';

const fault: Fault = { kind: 'slow-rank', rank: 2, factor: 1.5 };
const spec: JobSpec = { ranks: 4, seed: 11, layers: 4, steps: 3, faults: [fault] };
const home = mkdtempSync(join(tmpdir(), 'npu-several-'));
let folders: string[] = [];
let world: World;
beforeAll(async () => {
  folders = await writeProfiles(simulate(spec), join(home, 'job'));
  world = await createWorld();
  await world.start({ NPU_ADVISOR_TEST_ANALYSER: '' });
}, 60_000);
afterAll(async () => {
  await world.close();
  rmSync(home, { recursive: true, force: true });
});

/** The folders of some ranks as the zip of an artifact. */
async function zipOfRanks(ranks: readonly number[]): Promise<Buffer> {
  const files: Record<string, Buffer> = {};
  for (const rank of ranks) {
    const folder = folders[rank]!;
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      files[path.slice(home.length + 5)] = await readFile(path);
    }
  }
  return makeZip(files);
}

async function published(upload: (run: RunHandle) => Promise<void>) {
  const pull = openPull(world);
  const run = world.repository.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'success' });
  await upload(run);
  await world.hub.deliver('workflow_run', { action: 'completed', run });
  await until(world, pull, (view) => isConcluded(view) && view.comments.length === 1, 'published', 90_000);
  await untilQuiet(world, 500);
  return world.hub.view(pull);
}

/** A text without what names the upload. */
const plain = (text: string): string =>
  text
    .replace(/npu-profile[\w-]*\.zip\//g, '')
    .replace(/[0-9a-f]{7,40}/g, '')
    .replace(/pull\/\d+|pr=\d+|runs\/\d+/g, '');

describe('a job in two artifacts of two ranks each', () => {
  it('is one job: the slow rank is named among all four, and the report is that of one artifact', async () => {
    const two = await published(async (run) => {
      world.repository.addArtifact(run, { name: 'npu-profile-node1', zipBuffer: await zipOfRanks([2, 3]) });
      world.repository.addArtifact(run, { name: 'npu-profile-node0', zipBuffer: await zipOfRanks([0, 1]) });
      world.repository.addArtifact(run, { name: 'logs', zipBuffer: makeZip({ 'train.log': 'x' }) });
    });
    const one = await published(async (run) => {
      world.repository.addArtifact(run, { name: 'npu-profile', zipBuffer: await zipOfRanks([0, 1, 2, 3]) });
    });
    expect(two.checks).toHaveLength(1);
    expect(two.comments).toHaveLength(1);
    expect(two.comments[0]!.body).toMatch(/rank 2/i);
    expect(two.checks[0]!.title).toMatch(/^1 cause/);
    expect(two.checks[0]!.text).toContain('Ranks 0–3 of a world of 4');
    expect(two.checks[0]!.text).toContain('npu-profile-node0.zip/');
    expect(two.checks[0]!.title).toBe(one.checks[0]!.title);
    expect(plain(two.comments[0]!.body)).toBe(plain(one.comments[0]!.body));
    expect(world.hub.violations).toEqual([]);
  }, 120_000);

  it('of which one artifact is damaged says so, and which', async () => {
    const pull = openPull(world);
    const run = world.repository.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'success' });
    world.repository.addArtifact(run, { name: 'npu-profile-node0', zipBuffer: await zipOfRanks([0, 1]) });
    world.repository.addArtifact(run, { name: 'npu-profile-node1', zipBuffer: (await zipOfRanks([2, 3])).subarray(0, 5000) });
    await world.hub.deliver('workflow_run', { action: 'completed', run });
    const view = await until(world, pull, isConcluded, 'concluded', 60_000);
    expect(view.checks[0]!.summary).toContain('npu-profile-node1');
    expect(view.checks[0]!.summary).toMatch(/damaged/);
  }, 90_000);
});
