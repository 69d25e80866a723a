/* What happened while nobody was there, and no event tells of. */
import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { addRun, createWorld, isConcluded, ONE_FINDING, openPull, until, untilQuiet } from './support/world.ts';

const HOUR = 3600 * 1000;
// Several starts of a server each, on a machine that may be busy.
describe('a server that comes back', { timeout: 240_000 }, () => {
  it('takes up what changed while it was away: opened, pushed to, profiled', async () => {
    const world = await createWorld();
    try {
      // Changed long before anybody was here for the first time: not taken up.
      world.hub.advanceClock(-HOUR);
      const old = openPull(world);
      world.hub.advanceClock(HOUR);
      const before = await world.start();
      const pushed = openPull(world);
      await world.hub.deliver('pull_request', { action: 'opened', pr: pushed });
      const profiled = openPull(world);
      await world.hub.deliver('pull_request', { action: 'opened', pr: profiled });
      await until(world, profiled, (view) => view.checks.length === 1, 'queued');
      await untilQuiet(world, 600);
      await before.stop();

      const opened = openPull(world);
      const complete = openPull(world);
      addRun(world, complete, ONE_FINDING);
      addRun(world, profiled, ONE_FINDING);
      const head = world.repository.pushTo(pushed, { 'train.py': '# pushed\n' });
      const closed = openPull(world);
      world.repository.closePullRequest(closed);

      await world.start();
      await until(world, opened, (view) => view.checks.some(({ status }) => status === 'queued'), 'opened');
      await until(world, pushed, (view) => view.checks.some(({ headSha }) => headSha === head), 'pushed');
      await until(world, complete, (view) => isConcluded(view) && view.comments.length === 1, 'complete');
      await until(world, profiled, (view) => isConcluded(view) && view.comments.length === 1, 'profiled');
      await untilQuiet(world, 800);
      expect(world.hub.view(old).checks).toEqual([]);
      expect(world.hub.view(closed).checks).toEqual([]);
      for (const pull of [opened, complete, profiled]) expect(world.hub.view(pull).checks).toHaveLength(1);
      expect(world.hub.violations).toEqual([]);
    } finally {
      await world.close();
    }
  });

  it('does so once, and tries again when GitHub has trouble', async () => {
    const world = await createWorld();
    try {
      await (await world.start()).stop();
      const pull = openPull(world);
      const fault = world.hub.fault({ match: /^GET \/app\/installations/, status: 500, times: 100 });
      const second = await world.start();
      await expect.poll(() => second.log(), { timeout: 20_000 }).toContain('what was missed could not be looked for');
      expect(world.hub.view(pull).checks).toEqual([]);
      await second.stop();
      fault.times = 0;

      const third = await world.start();
      await until(world, pull, (view) => view.checks.length === 1, 'taken up');
      await untilQuiet(world, 600);
      await third.stop();
      const mark = world.hub.journal.length;
      await world.start();
      await untilQuiet(world, 1500);
      expect(world.hub.journal.slice(mark).filter(({ method, path }) => method !== 'GET' && !path.includes('access_tokens'))).toEqual([]);
      expect(world.hub.view(pull).checks).toHaveLength(1);
    } finally {
      await world.close();
    }
  });

  it('started for the first time leaves the open pull requests alone', async () => {
    const world = await createWorld();
    try {
      const pull = openPull(world);
      await world.start();
      await untilQuiet(world, 2000);
      expect(world.hub.view(pull).checks).toEqual([]);
    } finally {
      await world.close();
    }
  });

  it('with its store lost finds the check that somebody asks for again', async () => {
    const world = await createWorld();
    try {
      const first = await world.start();
      const pull = openPull(world);
      await world.hub.deliver('workflow_run', { action: 'completed', run: addRun(world, pull, ONE_FINDING) });
      await until(world, pull, (view) => isConcluded(view) && view.reviews.length === 1, 'published');
      await untilQuiet(world, 600);
      await first.stop();
      rmSync(world.dataDir, { recursive: true, force: true });
      await world.start();
      const check = { pr: pull, name: 'NPU Advisor' };
      const history = world.hub.view(pull).checks[0]!.history.length;
      await world.hub.deliver('check_run', { action: 'rerequested', check }, { sender: 'alice' });
      await until(world, pull, (view) => view.checks[0]!.history.length > history && isConcluded(view), 'analysed again');
      await untilQuiet(world, 1000);
      const view = world.hub.view(pull);
      expect([view.checks.length, view.comments.length, view.reviews.length]).toEqual([1, 1, 1]);
      expect(view.checks[0]?.annotations).toHaveLength(1);
    } finally {
      await world.close();
    }
  });
});
