/* What a check shows while long work goes on, and that it never stands in the way of the conclusion. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Dependencies } from '../../src/app/jobs/dependencies.ts';
import { startProgress } from '../../src/app/jobs/progress.ts';
import { createLogger } from '../../src/github/log.ts';
import type { Plan } from './support/fake-analyser.ts';
import { addRun, createWorld, isConcluded, ONE_FINDING, openPull, until, untilQuiet, type World } from './support/world.ts';
import { makeZip } from './support/zip.ts';

const PROGRESS_MS = 200;
let world: World;
beforeAll(async () => {
  world = await createWorld();
  await world.start({ NPU_ADVISOR_PROGRESS_S: String(PROGRESS_MS / 1000), NPU_ADVISOR_ANALYSES: '1' });
});
afterAll(() => world.close());
afterEach(() => {
  expect(world.hub.violations).toEqual([]);
});

const LONG: Plan = { ...ONE_FINDING, ranks: { count: 4, everyMs: 400 }, delayMs: 600 };
const completed = (run: ReturnType<typeof addRun>) => world.hub.deliver('workflow_run', { action: 'completed', run });

async function analysed(upload: Parameters<typeof addRun>[2], at: Pick<World, 'repository'> = world) {
  const pull = openPull(at);
  await completed(addRun(at, pull, upload));
  await until(world, pull, isConcluded, 'concluded');
  await untilQuiet(world, 1200);
  const check = world.hub.view(pull).checks[0]!;
  return { pull, check, history: check.history, titles: check.history.map(({ title }) => title ?? '') };
}

const isProgress = (title: string | null | undefined): boolean => /^(Downloading|Reading|Looking)/.test(title ?? '');

/** Requests that changed check runs, in order of their arrival. */
const updates = (from: number) =>
  world.hub.journal.slice(from).filter(({ method, path }) => method === 'PATCH' && path.includes('/check-runs/'));

describe('long work', () => {
  it('is shown step by step, in order, and never after the conclusion', async () => {
    const { check, history, titles } = await analysed(LONG);
    const told = titles.filter((title) => /^Reading|^Looking/.test(title));
    expect(told.length).toBeGreaterThan(2);
    const ranks = told.flatMap((title) => /: (\d) of 4 ranks$/.exec(title)?.[1] ?? []).map(Number);
    expect(ranks.length).toBeGreaterThan(1);
    expect(ranks).toEqual([...ranks].sort((a, b) => a - b));
    expect(told.at(-1)).toMatch(/^Looking for causes/);
    const read = history.find(({ title }) => title?.startsWith('Reading'))!;
    expect(read).toMatchObject({ status: 'in_progress', conclusion: null });
    expect(read.summary).toMatch(/Read: [\d.]+.(B|kB|MB) of 4\.0.MB, \d of 4 ranks done\. Running since \d\d:\d\d UTC \(0 min\)\./);
    // The conclusion is the last word; it is said once more only to link the posted suggestion.
    const done = history.slice(history.findIndex(({ status }) => status === 'completed'));
    for (const entry of done)
      expect(entry).toMatchObject({ status: 'completed', conclusion: 'neutral', title: expect.stringMatching(/^1 cause/) });
    expect(done.map(({ summary }) => summary?.includes('[suggestion]('))).toEqual([false, true]);
    expect(check.annotations).toHaveLength(1);
    // At most every so often.
    const times = history.filter(({ title }) => told.includes(title ?? '')).map(({ at }) => Date.parse(at));
    expect(times.length).toBeLessThanOrEqual(Math.ceil((Math.max(...times) - Math.min(...times) + 1000) / PROGRESS_MS) + 1);
  });

  it('begins with the download', async () => {
    const pull = openPull(world);
    const run = world.repository.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'success' });
    const zipBuffer = makeZip({
      'prof/plan.json': JSON.stringify(ONE_FINDING),
      'x.bin': Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 2654435761) >>> 24)),
    });
    world.repository.addArtifact(run, { name: 'npu-profile', zipBuffer, slowBytesPerSecond: zipBuffer.length / 2 });
    await completed(run);
    const view = await until(world, pull, isConcluded, 'concluded');
    const [first] = view.checks[0]!.history.filter(({ title }) => title?.startsWith('Downloading'));
    expect(first?.title).toMatch(/^Downloading profile of [0-9a-f]{7}: [\d.]+.k?B of [\d.]+.kB$/);
    expect(first?.summary).toMatch(/Downloaded: [\d.]+.k?B of [\d.]+.kB\./);
  });

  it('is told in the language of the repository', async () => {
    const repository = world.hub.addRepository({ owner: 'acme', name: 'zh', files: { '.github/npu-advisor.yml': 'lang: zh\n' } });
    const { titles, history } = await analysed(LONG, { repository });
    expect(titles.join('\n')).toMatch(/正在读取 [0-9a-f]{7} 的 profile：\d \/ 4 张卡/);
    expect(history.map(({ summary }) => summary).join('\n')).toMatch(/4 张卡中已完成 \d 张。开始于 UTC \d\d:\d\d，已运行 0 分钟。/);
  });

  it('of another says that it waits its turn', async () => {
    const first = openPull(world);
    const second = openPull(world);
    await completed(addRun(world, first, LONG));
    await until(world, first, (view) => view.checks.some((check) => check.status === 'in_progress'), 'the first is analysed');
    await completed(addRun(world, second, ONE_FINDING));
    const view = await until(world, second, isConcluded, 'concluded');
    expect(view.checks[0]!.history.some(({ title, status }) => title?.endsWith('waits its turn') && status === 'queued')).toBe(true);
  });
});

describe('a GitHub that has trouble', () => {
  it('refusing progress changes nothing', async () => {
    const mark = world.hub.journal.length;
    // The first update says that the analysis begins; what follows while it runs is progress.
    const fault = world.hub.fault({ match: /^PATCH \S*\/check-runs\/\d+/, skip: 1, times: 2, status: 502 });
    const { check, history, pull } = await analysed(LONG);
    expect(fault.hits).toBe(2);
    expect(check).toMatchObject({ status: 'completed', conclusion: 'neutral' });
    expect(history.at(-1)).toMatchObject({ status: 'completed' });
    expect(world.hub.view(pull).comments).toHaveLength(1);
    // Each was tried once: the next try is the next update.
    const statuses = updates(mark).map(({ status }) => status);
    expect(statuses.filter((status) => status === 502)).toHaveLength(2);
    expect(statuses.length).toBeLessThan(20);
  });

  it.each([403, 429])('limiting it with %i changes nothing', async (status) => {
    const fault = world.hub.fault({ match: /^PATCH \S*\/check-runs\/\d+/, skip: 1, times: 1, status, headers: { 'retry-after': '60' } });
    const { check } = await analysed(LONG);
    expect(fault.hits).toBe(1);
    expect(check).toMatchObject({ status: 'completed', conclusion: 'neutral' });
  });

  it('answering slowly holds the conclusion until the answer is there', async () => {
    const fault = world.hub.fault({ match: /^PATCH \S*\/check-runs\/\d+/, skip: 1, times: 1, hangMs: 800 });
    const { history } = await analysed({ ...ONE_FINDING, ranks: { count: 1, everyMs: 250 } });
    expect(fault.hits).toBe(1);
    expect(history.filter(({ title }) => isProgress(title)).length).toBeGreaterThan(0);
    expect(history.at(-1)).toMatchObject({ status: 'completed', title: expect.stringMatching(/^1 cause/) });
  });

  it('taking an update in after the conclusion, has it said again', async () => {
    const pull = openPull(world);
    const waitFor = until(world, pull, isConcluded, 'concluded');
    const fault = world.hub.fault({ match: /^PATCH \S*\/check-runs\/\d+/, skip: 1, times: 1, waitFor });
    await completed(addRun(world, pull, { ...ONE_FINDING, ranks: { count: 1, everyMs: 250 } }));
    await waitFor;
    expect(fault.hits).toBe(1);
    // It may be overwritten at once, by the link to the suggestion or by the second word.
    const isLate = (entry: { status: string; title: string | null }): boolean => entry.status === 'completed' && isProgress(entry.title);
    await until(world, pull, ({ checks }) => checks[0]?.history.some(isLate) === true, 'the late update');
    await until(world, pull, (view) => /^1 cause/.test(view.checks[0]?.title ?? ''), 'said again');
    // Not even for a moment was the check open again.
    const { history, annotations } = world.hub.view(pull).checks[0]!;
    const concluded = history.findIndex(({ status }) => status === 'completed');
    expect(history.slice(concluded).every(({ status, conclusion }) => status === 'completed' && conclusion === 'neutral')).toBe(true);
    await untilQuiet(world, 600);
    expect(world.hub.view(pull).comments).toHaveLength(1);
    expect(annotations).toHaveLength(1);
  });

  it('losing an answer changes nothing', async () => {
    const fault = world.hub.fault({ match: /^PATCH \S*\/check-runs\/\d+/, skip: 1, times: 2, phase: 'after', dropConnection: true });
    const { history } = await analysed(LONG);
    expect(fault.hits).toBe(2);
    expect(history.at(-1)).toMatchObject({ status: 'completed', title: expect.stringMatching(/^1 cause/) });
  });
});

describe('the reporter', () => {
  /** Dependencies whose GitHub only counts. */
  function counting(headers: Record<string, string>, progressMs: number): { deps: Dependencies; sent: () => number } {
    let sent = 0;
    const update = async (): Promise<object> => {
      sent++;
      return { headers };
    };
    const client = { rest: { checks: { update } } };
    const deps = {
      github: { identity: async () => ({ id: 1, slug: 'npu-advisor' }), client: async () => client },
      store: { checks: { ofCommit: async () => [{}] } },
      options: { progressMs, isTest: true },
      log: createLogger('silent'),
      signal: new AbortController().signal,
      now: Date.now,
    } as unknown as Dependencies;
    return { deps, sent: () => sent };
  }
  const place = { target: { installationId: 1, repository: { id: 1, owner: 'a', name: 'b' } }, sha: 'a'.repeat(40), pr: 1 };
  async function tellFor(deps: Dependencies, ms: number): Promise<void> {
    const progress = startProgress(deps, place, 1, 'en');
    const until = Date.now() + ms;
    for (let done = 0; Date.now() < until; done++) {
      progress.tell({ kind: 'download', bytes: { done: done * 1e6, total: 1e9 } });
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await progress.stop();
  }

  it('leaves the last requests of the hour to the conclusion', async () => {
    const reset = String(Math.ceil(Date.now() / 1000) + 60);
    const low = counting({ 'x-ratelimit-remaining': '800', 'x-ratelimit-limit': '5000', 'x-ratelimit-reset': reset }, 20);
    await tellFor(low.deps, 300);
    expect(low.sent()).toBe(1);
    const plenty = counting({ 'x-ratelimit-remaining': '4800', 'x-ratelimit-limit': '5000', 'x-ratelimit-reset': reset }, 20);
    await tellFor(plenty.deps, 300);
    expect(plenty.sent()).toBeGreaterThan(3);
  });

  it('can be switched off, and says nothing twice', async () => {
    const off = counting({}, 0);
    await tellFor(off.deps, 100);
    expect(off.sent()).toBe(0);
    const same = counting({}, 20);
    const progress = startProgress(same.deps, place, 1, 'en');
    progress.tell({ kind: 'diagnose' });
    await new Promise((resolve) => setTimeout(resolve, 200));
    await progress.stop();
    expect(same.sent()).toBe(1);
  });
});
