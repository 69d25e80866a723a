import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { KILL_POINTS } from '../../src/app/kill-point.ts';
import { COMMENT_MARKER } from '../../src/github/publish/comment.ts';
import { addRun, createWorld, ONE_FINDING, openPull, startServer, until, untilQuiet } from './support/world.ts';

describe('a server killed at any point', () => {
  it.each(KILL_POINTS)('%s: after a restart there is exactly one comment and one concluded check', async (point) => {
    const world = await createWorld();
    try {
      const pull = openPull(world);
      const doomed = await world.start({ NPU_ADVISOR_KILL_AT: point });
      const run = addRun(world, pull, ONE_FINDING);
      await world.hub.deliver('workflow_run', { action: 'completed', run }).catch(() => undefined);
      expect(await doomed.exited).toEqual({ code: null, signal: 'SIGKILL' });

      await world.start();
      await until(
        world,
        pull,
        // What was published before the kill does not show that the restarted job is done: its last act links the suggestion.
        (view) =>
          view.comments.some((comment) => comment.body.includes('#discussion_r')) &&
          view.checks.some((check) => check.status === 'completed') &&
          view.reviews.length > 0,
        'everything is published',
      );
      await untilQuiet(world);
      const view = world.hub.view(pull);
      expect(view.comments.filter((comment) => comment.body.startsWith(COMMENT_MARKER))).toHaveLength(1);
      expect(view.comments).toHaveLength(1);
      expect(view.comments[0]?.body).toContain('Data loader starves');
      expect(view.comments[0]?.body).toContain('#discussion_r');
      expect(view.checks.map((check) => [check.status, check.conclusion])).toEqual([['completed', 'neutral']]);
      expect(view.checks[0]?.annotations).toHaveLength(1);
      expect(view.reviews).toHaveLength(1);
      expect(readdirSync(join(world.dataDir, 'scratch'))).toEqual([]);
      expect(readdirSync(join(world.dataDir, 'spool'))).toEqual([]);
      expect(world.hub.violations).toEqual([]);
    } finally {
      await world.close();
    }
  });

  it.each(['after-delivery-accepted', 'job-started', 'artifact-listed'] as const)(
    '%s while the pull request is opened: the check is queued once and the profile still analysed',
    async (point) => {
      const world = await createWorld();
      try {
        const doomed = await world.start({ NPU_ADVISOR_KILL_AT: point });
        const pull = openPull(world);
        await world.hub.deliver('pull_request', { action: 'opened', pr: pull }).catch(() => undefined);
        expect((await doomed.exited).signal).toBe('SIGKILL');
        await world.start();
        await until(world, pull, (view) => view.checks.length === 1, 'the check is queued');
        const run = addRun(world, pull, ONE_FINDING);
        await world.hub.deliver('workflow_run', { action: 'completed', run });
        await until(world, pull, (view) => view.checks[0]?.status === 'completed' && view.comments.length > 0, 'published');
        await untilQuiet(world);
        expect(world.hub.view(pull).checks).toHaveLength(1);
        expect(world.hub.view(pull).comments).toHaveLength(1);
      } finally {
        await world.close();
      }
    },
  );

  it('killed in the same place every time, gives up with an explanation', async () => {
    const world = await createWorld();
    try {
      const pull = openPull(world);
      const run = addRun(world, pull, ONE_FINDING);
      const env = { NPU_ADVISOR_KILL_AT: 'during-analysis', NPU_ADVISOR_ATTEMPTS: '2' };
      const first = await world.start(env);
      await world.hub.deliver('workflow_run', { action: 'completed', run });
      await first.exited;
      const second = await startServer({ ...world.env, ...env });
      await second.exited;
      await world.start(env);
      const view = await until(world, pull, (v) => v.checks.some((check) => check.status === 'completed'), 'given up');
      expect(view.checks.map((check) => check.conclusion)).toEqual(['neutral']);
      expect(view.checks[0]?.summary).toMatch(/did not finish after several tries/);
    } finally {
      await world.close();
    }
  });
});

describe('a server that is told to stop', () => {
  it('finishes a short analysis and ends with 0', async () => {
    const world = await createWorld();
    try {
      const server = await world.start();
      const pull = openPull(world);
      await world.hub.deliver('workflow_run', { action: 'completed', run: addRun(world, pull, { ...ONE_FINDING, delayMs: 1500 }) });
      await until(world, pull, (view) => view.checks.some((check) => check.status === 'in_progress'), 'analysing');
      server.child.kill('SIGTERM');
      expect(await server.exited).toEqual({ code: 0, signal: null });
      expect(world.hub.view(pull).checks[0]?.status).toBe('completed');
      expect(world.hub.view(pull).reviews).toHaveLength(1);
    } finally {
      await world.close();
    }
  });

  it('leaves a long one to the next start', async () => {
    const world = await createWorld();
    try {
      const server = await world.start({ NPU_ADVISOR_DRAIN_S: '0' });
      const pull = openPull(world);
      await world.hub.deliver('workflow_run', { action: 'completed', run: addRun(world, pull, { ...ONE_FINDING, delayMs: 4000 }) });
      await until(world, pull, (view) => view.checks.some((check) => check.status === 'in_progress'), 'analysing');
      server.child.kill('SIGTERM');
      expect((await server.exited).code).toBe(0);
      expect(world.hub.view(pull).comments).toEqual([]);
      await world.start();
      await until(world, pull, (view) => view.reviews.length === 1, 'published');
      expect(world.hub.view(pull).comments).toHaveLength(1);
    } finally {
      await world.close();
    }
  });
});

describe('a server that was down', () => {
  it('asks for what it missed', async () => {
    const world = await createWorld();
    try {
      await (await world.start()).stop();
      const pull = openPull(world);
      const run = addRun(world, pull, ONE_FINDING);
      await world.hub.deliver('workflow_run', { action: 'completed', run }, { drop: true });
      await world.start();
      await until(world, pull, (view) => view.comments.length === 1 && view.checks.length === 1, 'published');
      expect(world.hub.violations).toEqual([]);
    } finally {
      await world.close();
    }
  });
});

describe('the data folder', () => {
  it('is refused to a second server in one sentence', async () => {
    const world = await createWorld();
    try {
      await world.start();
      await expect(startServer(world.env)).rejects.toThrow(/the data folder .* is in use by process \d+/);
    } finally {
      await world.close();
    }
  });
});
