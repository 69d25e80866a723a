import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addRun, createWorld, ONE_FINDING, openPull, type ServerProcess, until, untilQuiet, type World } from './support/world.ts';

/** Needs a PostgreSQL of one's own; the schemas npu_advisor and npu_advisor_queue in it are dropped. */
const url = process.env.NPU_ADVISOR_TEST_DATABASE_URL;

describe.skipIf(url === undefined)('several servers on one PostgreSQL (NPU_ADVISOR_TEST_DATABASE_URL)', () => {
  let world: World;
  let folders: string[] = [];
  const servers: ServerProcess[] = [];
  const start = (extra: Record<string, string> = {}): Promise<ServerProcess> => {
    const folder = mkdtempSync(join(tmpdir(), 'npu-advisor-pg-'));
    folders.push(folder);
    return world.start({ NPU_ADVISOR_DATA_DIR: folder, ...extra }).then((server) => {
      servers.push(server);
      return server;
    });
  };
  beforeEach(async () => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('DROP SCHEMA IF EXISTS npu_advisor CASCADE; DROP SCHEMA IF EXISTS npu_advisor_queue CASCADE');
    await client.end();
    world = await createWorld({ databaseUrl: url! });
  });
  afterEach(async () => {
    await world.close();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    folders = [];
  });

  it('answer many deliveries, spread over both, with one comment and one check each', async () => {
    const [a, b] = await Promise.all([start(), start()]);
    const pulls = Array.from({ length: 6 }, () => openPull(world));
    await Promise.all(
      pulls.flatMap((pull) => {
        const run = addRun(world, pull, ONE_FINDING);
        return [
          world.hub.deliver('pull_request', { action: 'opened', pr: pull }, { url: a.webhookUrl }),
          world.hub.deliver('workflow_run', { action: 'completed', run }, { url: b.webhookUrl, guid: `same-${pull.number}` }),
          world.hub.deliver('workflow_run', { action: 'completed', run }, { url: a.webhookUrl, guid: `same-${pull.number}` }),
        ];
      }),
    );
    for (const pull of pulls) await until(world, pull, (view) => view.reviews.length === 1, 'published', 60_000);
    await untilQuiet(world);
    for (const pull of pulls) {
      const view = world.hub.view(pull);
      expect([view.comments.length, view.checks.length, view.reviews.length]).toEqual([1, 1, 1]);
      expect(view.checks[0]?.status).toBe('completed');
    }
    expect(world.hub.violations).toEqual([]);
  }, 120_000);

  it('take over what one of them was doing when it was killed', async () => {
    const doomed = await start({ NPU_ADVISOR_KILL_AT: 'during-analysis' });
    const pull = openPull(world);
    await world.hub.deliver('workflow_run', { action: 'completed', run: addRun(world, pull, ONE_FINDING) });
    expect((await doomed.exited).signal).toBe('SIGKILL');
    await start();
    await until(world, pull, (view) => view.reviews.length === 1, 'taken over', 90_000);
    await untilQuiet(world);
    const view = world.hub.view(pull);
    expect([view.comments.length, view.checks.length, view.checks[0]?.status]).toEqual([1, 1, 'completed']);
  }, 120_000);
});
