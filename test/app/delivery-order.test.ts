/* 1,000 deliveries in any order, 30 % of them twice, end as the same deliveries in order do. A longer run: NPU_ADVISOR_TEST_ORDERS=20. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PullHandle, PullView, RepositoryHandle } from '../../lab/loopback-github/index.ts';
import { COMMENT_MARKER } from '../../src/github/publish/comment.ts';
import type { Plan } from './support/fake-analyser.ts';
import { type Jobs, openJobs, type Spooled } from './support/jobs.ts';
import { addRun, ONE_FINDING, TRAIN_PY } from './support/world.ts';

let jobs: Jobs;
beforeAll(async () => {
  jobs = await openJobs();
});
afterAll(async () => {
  expect(jobs.hub.violations).toEqual([]);
  await jobs.close();
});

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const all = [...items];
  for (let i = all.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [all[i], all[j]] = [all[j]!, all[i]!];
  }
  return all;
}

interface Story {
  readonly repository: RepositoryHandle;
  readonly pulls: readonly PullHandle[];
  readonly shas: readonly string[];
  readonly deliveries: readonly Spooled[];
}

const PULLS = 6;
const PUSHES = 3;
const TOTAL = 1000;

/** Weeks of a repository: pushes, runs, chatter, commands, closed and reopened. What GitHub knows at the end is the same for every order. */
async function tell(name: string): Promise<Story> {
  const { hub } = jobs;
  const repository = hub.addRepository({ owner: 'acme', name, files: { 'train.py': 'import torch\n' } });
  const deliveries: Spooled[] = [];
  const send: Jobs['make'] = async (event, request, options) => {
    const made = await jobs.make(event, request, options);
    deliveries.push(made);
    return made;
  };
  // The very first profile of a repository is told apart from later ones, so one is there before.
  const first = repository.openPullRequest({ author: 'alice', branch: 'first', title: 'First', changes: { 'train.py': '# first\n' } });
  await jobs.take('workflow_run', { action: 'completed', run: addRun({ repository }, first, { findings: [] }) });
  const pulls: PullHandle[] = [];
  const shas: string[] = [];
  for (let p = 0; p < PULLS; p++) {
    const pull = repository.openPullRequest({
      author: 'alice',
      branch: `work-${p}`,
      title: `Work ${p}`,
      draft: p === 1,
      changes: { 'train.py': `${TRAIN_PY}# ${p}\n` },
      ...(p % 4 === 3 ? { fork: { owner: 'mallory' } } : {}),
    });
    pulls.push(pull);
    await send('pull_request', { action: 'opened', pr: pull });
    for (let push = 0; push < PUSHES; push++) {
      shas.push(pull.headSha);
      // The last push of a pull request decides what its comment says; one pull request ends without a profile.
      const plan: Plan | null = p === 2 && push === PUSHES - 1 ? null : p % 3 === 0 ? { findings: [] } : ONE_FINDING;
      const run = addRun({ repository }, pull, plan);
      for (const action of ['requested', 'in_progress'] as const) await send('workflow_run', { action, run });
      await send('workflow_run', { action: 'completed', run });
      if (push === PUSHES - 1) break;
      if (push % 2 === 0) repository.pushTo(pull, { 'train.py': `${TRAIN_PY}# ${p} ${push}\n` });
      else repository.forcePush(pull, { 'train.py': `${TRAIN_PY}# ${p} ${push} forced\n` });
      await send('pull_request', { action: 'synchronize', pr: pull });
    }
    if (p === 1) {
      repository.markReady(pull);
      await send('pull_request', { action: 'ready_for_review', pr: pull });
    }
    if (p === 4) {
      repository.closePullRequest(pull);
      await send('pull_request', { action: 'closed', pr: pull });
    }
    if (p === 5) {
      await send('issue_comment', { action: 'created', comment: repository.comment(pull, 'alice', '/npu-advise help') });
      await send('issue_comment', { action: 'created', comment: repository.comment(pull, 'stranger', '/npu-advise run') });
    }
    await send('issue_comment', { action: 'created', comment: repository.comment(pull, 'bob', 'Looks good.') });
  }
  return { repository, pulls, shas, deliveries };
}

/** So many deliveries of the same events under ids of their own. A command is written once, so it has one delivery. */
function repeated(deliveries: readonly Spooled[]): Spooled[] {
  const all = [...deliveries];
  const distinct = all.length;
  for (let i = 0; all.length < TOTAL; i++) {
    const { guid, event, body } = all[i % distinct]!;
    if (event !== 'issue_comment.created' || body === null) all.push({ guid: `${guid}-${i}`, event, body });
  }
  return all;
}

/** How a story ends, without what differs between two tellings of it: names and numbers. */
function ending({ repository, pulls, shas }: Story): unknown {
  const plain = (value: unknown): unknown => {
    let text = JSON.stringify(value).replaceAll(repository.name, 'REPOSITORY');
    for (const [i, sha] of shas.entries()) text = text.replaceAll(sha, `<commit ${i}>`).replaceAll(sha.slice(0, 7), `<commit ${i}>`);
    return JSON.parse(text.replace(/\d{8,}/g, '<number>').replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>'));
  };
  const look = (view: PullView): unknown => ({
    comments: view.comments.map(({ author, body, reactions }) => plain({ author, body, reactions: [...reactions].sort() })).sort(byText),
    checks: view.checks
      .map(({ name, headSha, status, conclusion, title, summary, text, annotations, actions }) => {
        return plain({ name, headSha, status, conclusion, title, summary, text, annotations, actions });
      })
      .sort(byText),
    reviews: view.reviews.map(({ body, comments }) => plain({ body, comments: comments.map((comment) => comment.body) })),
  });
  return pulls.map((pull) => look(jobs.hub.view(pull)));
}

function byText(a: unknown, b: unknown): number {
  const [left, right] = [JSON.stringify(a), JSON.stringify(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

describe('1,000 deliveries', { timeout: 600_000 }, () => {
  it('in any order, some of them twice, end as in order', async () => {
    const mark = (what: string, from: number): number => {
      if (process.env.NPU_ADVISOR_TEST_LOG) console.log(what, Math.round(performance.now() - from));
      return performance.now();
    };
    let at = performance.now();
    const orderly = await tell('orderly');
    at = mark('told', at);
    await jobs.accept(...orderly.deliveries);
    at = mark('accepted', at);
    await jobs.workOff();
    at = mark('worked off', at);
    const expected = ending(orderly);

    for (let seed = 1; seed <= Number(process.env.NPU_ADVISOR_TEST_ORDERS ?? 1); seed++) {
      const random = seeded(seed);
      const story = await tell(`shuffled-${seed}`);
      const thousand = repeated(story.deliveries);
      expect(thousand).toHaveLength(TOTAL);
      const twice = thousand.flatMap((delivery) => (random() < 0.3 ? [delivery, delivery] : [delivery]));
      expect(twice.length).toBeGreaterThan(TOTAL * 1.2);
      const order = shuffled(twice, random);
      at = mark('told', at);
      // In lots, so that work is going on while others arrive.
      for (let i = 0; i < order.length; ) {
        const lot = 200 + Math.floor(random() * 400);
        await jobs.accept(...order.slice(i, i + lot));
        await jobs.workOff();
        i += lot;
      }
      at = mark('worked off', at);
      expect(ending(story), `seed ${seed}`).toEqual(expected);
      for (const pull of story.pulls) {
        const view = jobs.hub.view(pull);
        expect(view.comments.filter(({ body }) => body.startsWith(COMMENT_MARKER)).length).toBeLessThanOrEqual(1);
        const heads = view.checks.map(({ headSha }) => headSha);
        expect(new Set(heads).size).toBe(heads.length);
        for (const check of view.checks) expect(check.status).toBe('completed');
      }
    }
  });
});
