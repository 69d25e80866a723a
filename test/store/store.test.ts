import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lockFolder } from '../../src/store/embedded/folder-lock.ts';
import { openSpool, readSpool } from '../../src/store/embedded/spool.ts';
import { type OpenStore, openStore, spoolFolder } from '../../src/store/open.ts';
import type { CheckRecord } from '../../src/store/ports.ts';

const root = mkdtempSync(join(tmpdir(), 'npu-store-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function options(dataDir: string, databaseUrl: string | null = null) {
  return {
    databaseUrl,
    dataDir,
    retryLimit: 3,
    retryDelaySeconds: 1,
    expireSeconds: 600,
    onError: (error: Error) => {
      throw error;
    },
  };
}

const check: CheckRecord = {
  repoId: 7,
  owner: 'acme',
  repo: 'train',
  sha: 'a'.repeat(40),
  pr: 3,
  installationId: 99,
  checkRunId: 1234567890123,
  url: 'https://github.com/acme/train/runs/1234567890123',
  phase: 'queued',
  conclusion: null,
  hasReport: false,
  deadlineAt: 1000,
};

const stores: [string, string | null][] = [['embedded', null]];
if (process.env.NPU_ADVISOR_TEST_DATABASE_URL) stores.push(['postgres', process.env.NPU_ADVISOR_TEST_DATABASE_URL]);

describe.each(stores)('the %s store', (name, url) => {
  let open: OpenStore;
  beforeAll(async () => {
    open = await openStore(options(join(root, name), url));
  });
  afterAll(async () => {
    await open.queue.drain(1000);
    await open.close();
  });

  it('accepts so many asks of a person, and counts none twice', async () => {
    const { asks } = open.store;
    const repoId = Date.now();
    const ask = (login: string, origin: string) => asks.take({ repoId, login, origin }, 2, 60_000);
    expect(await ask('alice', 'a')).toEqual({ accepted: true });
    expect(await ask('Alice', 'b')).toEqual({ accepted: true });
    expect(await ask('alice', 'a')).toEqual({ accepted: true });
    const refused = await ask('alice', 'c');
    expect(refused).toMatchObject({ accepted: false, isFirst: true });
    expect(refused.accepted ? 0 : refused.againAt).toBeGreaterThan(Date.now() + 50_000);
    expect(await ask('ALICE', 'd')).toMatchObject({ accepted: false, isFirst: false });
    expect(await ask('alice', 'c')).toMatchObject({ accepted: false, isFirst: true });
    expect(await ask('bob', 'e')).toEqual({ accepted: true });
    expect(await asks.take({ repoId: repoId + 1, login: 'alice', origin: 'a' }, 2, 60_000)).toEqual({ accepted: true });
    // What was refused does not keep somebody out.
    expect(await asks.take({ repoId, login: 'alice', origin: 'f' }, 2, 0)).toEqual({ accepted: true });
    await asks.prune(Date.now() + 1000);
    expect(await ask('alice', 'g')).toEqual({ accepted: true });
  });

  it('keeps one acknowledgement for each finding of a pull request, and tells which have ended', async () => {
    const { acknowledgements, checks, pullRequests } = open.store;
    const repoId = Date.now() + 1;
    const given = { rule: 'slow-rank', title: '卡 5 慢', by: 'alice', at: 1000, sha: 'a', until: null, reason: '\u0000 "x"', saving: null };
    const [one, two] = [
      { ...given, finding: 'f1' },
      { ...given, finding: 'f2', at: 2000, until: '2027-01-31' },
    ];
    await acknowledgements.put(repoId, 3, [one, two]);
    await acknowledgements.put(repoId, 3, [{ ...one, reason: 'again' }]);
    expect(await acknowledgements.of(repoId, 3)).toEqual([{ ...one, reason: 'again' }, two]);
    expect(await acknowledgements.of(repoId, 4)).toEqual([]);
    for (const sha of ['1', '2']) {
      await checks.put({ ...check, repoId, phase: 'completed', sha: sha.repeat(40) });
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const newest = { repoId, owner: 'acme', repo: 'train', pr: 3, installationId: 99, sha: '2'.repeat(40) };
    const ended = async (from: string, before: string) => (await acknowledgements.ended(from, before)).filter((c) => c.repoId === repoId);
    expect(await ended('2027-01-31', '2027-02-01')).toEqual([newest]);
    // A check of an older commit may be written to later than that of the commit whose report is shown.
    const reported = { repoId, pr: 3, commentId: 1, bodyHash: null, findings: [], before: [], suggested: [] };
    await pullRequests.put({ ...reported, reportedSha: '1'.repeat(40) });
    expect(await ended('2027-01-31', '2027-02-01')).toEqual([{ ...newest, sha: '1'.repeat(40) }]);
    await pullRequests.put({ ...reported, reportedSha: '3'.repeat(40) });
    expect(await ended('2027-01-31', '2027-02-01')).toEqual([newest]);
    expect(await ended('', '2027-01-31')).toEqual([]);
    expect(await ended('2027-02-01', '2027-03-01')).toEqual([]);
    await acknowledgements.remove(repoId, 3, ['f2', 'f3']);
    await acknowledgements.prune(1000);
    expect(await acknowledgements.of(repoId, 3)).toHaveLength(1);
    await acknowledgements.prune(1001);
    expect(await acknowledgements.of(repoId, 3)).toEqual([]);
  });

  it('remembers moments', async () => {
    const { marks } = open.store;
    const name = `m-${Date.now()}`;
    expect(await marks.read(name)).toBeNull();
    await marks.write(name, 5);
    await marks.write(name, 1_800_000_000_000);
    expect(await marks.read(name)).toBe(1_800_000_000_000);
  });

  it('records a delivery once', async () => {
    const delivery = { guid: `g-${Date.now()}`, event: 'pull_request', receivedAt: Date.now() };
    expect(await open.store.deliveries.record(delivery)).toBe(true);
    expect(await open.store.deliveries.record(delivery)).toBe(false);
  });

  it('keeps a request until it is settled, and revives a failed one', async () => {
    const subject = `acme/train#${Date.now()}`;
    const origin = `guid-${subject}`;
    const request = { subject, kind: 'analyse', origin, payload: { sha: 'abc', text: '中文' } };
    const id = await open.store.requests.add(request);
    expect(id).not.toBeNull();
    expect(await open.store.requests.add(request)).toBeNull();
    await open.store.requests.begin([id!]);
    const [pending] = await open.store.requests.pending(subject);
    expect(pending).toMatchObject({ attempts: 1, payload: { sha: 'abc', text: '中文' } });
    await open.store.requests.settle([id!], 'failed', 'why');
    expect(await open.store.requests.pending(subject)).toEqual([]);
    expect(await open.store.requests.reopen(origin)).toEqual([subject]);
    expect(await open.store.requests.pendingSubjects(100)).toContain(subject);
    await open.store.requests.settle([id!], 'done', '');
    expect(await open.store.requests.reopen(origin)).toEqual([]);
  });

  it('maps check runs to pull requests and finds the overdue ones', async () => {
    await open.store.checks.put(check);
    expect(await open.store.checks.find(7, check.sha, 3)).toEqual(check);
    expect(await open.store.checks.find(7, check.sha, 4)).toBeNull();
    expect(await open.store.checks.overdue(999, 10)).toEqual([]);
    expect(await open.store.checks.overdue(1000, 10)).toEqual([check]);
    await open.store.checks.put({ ...check, phase: 'completed', conclusion: 'neutral', hasReport: true });
    expect(await open.store.checks.overdue(1000, 10)).toEqual([]);
    expect(await open.store.checks.openOfPullRequest(7, 3)).toEqual([]);
  });

  it('keeps a state for each pull request with the same head, also beside a version that knows one for a commit', async () => {
    const { checks, database } = open.store;
    const repoId = Date.now() + 2;
    const one = { ...check, repoId, deadlineAt: 2000 };
    const two = { ...one, pr: 4, phase: 'completed', conclusion: 'failure', hasReport: true, said: '{"title":"x"}' } as const;
    /** As the version before this one writes. */
    const old = (pr: number, conclusion: string, at: number) =>
      database.query(
        `INSERT INTO npu_advisor.check_runs VALUES ($1, $2, 'acme', 'train', $3, 99, 5, NULL, 'completed', $4, true, NULL, $5)
         ON CONFLICT (repo_id, sha) DO UPDATE SET pr = excluded.pr, phase = excluded.phase, conclusion = excluded.conclusion,
           has_report = excluded.has_report, deadline_at = excluded.deadline_at, updated_at = excluded.updated_at`,
        [repoId, one.sha, pr, conclusion, at],
      );
    const states = async () => (await checks.ofCommit(repoId, one.sha)).map(({ pr, conclusion }) => [pr, conclusion]);
    await old(3, 'neutral', 10);
    expect(await states()).toEqual([[3, 'neutral']]);
    await checks.put(two);
    expect(await states()).toEqual([
      [3, 'neutral'],
      [4, 'failure'],
    ]);
    expect(await checks.find(repoId, one.sha, 4)).toEqual(two);
    expect(await checks.sharedOfPullRequest(repoId, 4)).toEqual([two]);
    await old(4, 'success', 20);
    expect(await states()).toEqual([
      [3, 'neutral'],
      [4, 'success'],
    ]);
    await checks.put(one);
    expect(await states()).toEqual([
      [3, null],
      [4, 'success'],
    ]);
    const isOurs = ({ repoId: of }: CheckRecord) => of === repoId;
    expect((await checks.overdue(2000, 1000)).filter(isOurs).map(({ pr }) => pr)).toEqual([3]);
    expect(await checks.openOfPullRequest(repoId, 4)).toEqual([]);
    await checks.drop(repoId, one.sha, 3);
    expect(await states()).toEqual([[4, 'success']]);
    // The only one stays, and ages.
    await checks.prune(Date.now() + 1000);
    expect(await states()).toEqual([]);
  });

  it('remembers what was posted on a pull request', async () => {
    const state = {
      repoId: 7,
      pr: 3,
      commentId: 5,
      bodyHash: 'h',
      reportedSha: check.sha,
      findings: [{ id: 'f1', title: '数据加载', saving: null }],
      before: [{ id: 'f0', title: 'x', saving: { likely: null, ceiling: 2 } }],
      suggested: ['f1'],
    };
    await open.store.pullRequests.put(state);
    await open.store.pullRequests.put({ ...state, commentId: 6 });
    expect(await open.store.pullRequests.find(7, 3)).toEqual({ ...state, commentId: 6 });
    expect(await open.store.pullRequests.find(7, 4)).toBeNull();
  });

  it('keeps reports by their inputs, refuses huge ones and forgets old ones', async () => {
    const report = { key: `k-${Date.now()}`, repoId: 7, pr: 3, sha: check.sha, json: '{"schema":"x"}' };
    expect(await open.store.reports.put(report)).toBe(true);
    expect(await open.store.reports.get(report.key)).toEqual({ schema: 'x' });
    expect(await open.store.reports.latest(7, check.sha, 3)).toEqual({ schema: 'x' });
    expect(await open.store.reports.latest(7, check.sha, 4)).toBeNull();
    expect(await open.store.reports.put({ ...report, key: 'huge', json: `"${'x'.repeat(9_000_000)}"` })).toBe(false);
    await open.store.reports.prune(0, 0);
    expect(await open.store.reports.get(report.key)).toBeNull();
  });

  it('keeps profiles by commit, branch and pull request, within bounds', async () => {
    const { profiles } = open.store;
    const repoId = Date.now();
    const metrics = { stepTimeMs: 741.9, freeShare: 0.2, exposedMs: 131, top: [{ rule: 'slow-rank', savingMs: 38 }] };
    const common = { repoId, installationId: 9, job: 'default', pr: null, trusted: true, metrics };
    const facts = (text: string) => ({ schema: 'npu-advisor.facts/1', bytes: Buffer.from(text) });
    await profiles.put({ ...common, sha: 'a', branch: 'main', origin: 'run/1/1', recordedAt: 100 }, facts('first'));
    await profiles.put({ ...common, sha: 'a', branch: 'main', origin: 'run/1/1', recordedAt: 150 }, facts('again'));
    await profiles.put({ ...common, sha: 'b', branch: 'main', origin: 'run/2/1', recordedAt: 200 }, facts('\0\xff second'));
    await profiles.put(
      { ...common, sha: 'b', branch: null, pr: 4, origin: 'run/3/1', trusted: false, recordedAt: 300 },
      facts('of a fork'),
    );
    await profiles.put({ ...common, sha: 'b', job: 'bert', branch: 'main', origin: 'run/2/1', recordedAt: 200 }, null);

    const [first] = await profiles.ofCommits(repoId, 'default', ['a']);
    expect(first).toMatchObject({ sha: 'a', recordedAt: 100, metrics, factsSchema: 'npu-advisor.facts/1' });
    expect(Buffer.from((await profiles.facts(first!.id))!).toString()).toBe('again');
    const of = async (shas: string[]) => (await profiles.ofCommits(repoId, 'default', shas)).map(({ origin }) => origin);
    expect(await of([])).toEqual([]);
    expect(await of(['b', 'a', 'c'])).toEqual(['run/2/1', 'run/1/1']);
    expect((await profiles.ofBranch(repoId, 'default', 'main', 1)).map(({ sha }) => sha)).toEqual(['b']);
    expect((await profiles.ofPullRequest(repoId, 'default', 4, 9)).map(({ trusted }) => trusted)).toEqual([false]);
    expect((await profiles.list({ repoId, after: 0, limit: 9 })).map(({ job }) => job)).toEqual(['default', 'default', 'default', 'bert']);
    expect(await profiles.list({ repoId: repoId + 1, after: 0, limit: 9 })).toEqual([]);

    const wide = { factsOlderThan: 0, pullRequestFactsOlderThan: 0, factsBytes: 1e9, olderThan: 0, keep: 100 };
    const held = async () =>
      (await profiles.list({ repoId, job: 'default', after: 0, limit: 9 })).map(({ factsSchema }) => factsSchema !== null);
    await profiles.prune(wide);
    expect(await held()).toEqual([true, true, true]);
    // Newest of a branch first; what a pull request brought goes before them.
    await profiles.prune({ ...wide, factsBytes: 30 });
    expect(await held()).toEqual([true, true, false]);
    await profiles.prune({ ...wide, factsOlderThan: 150 });
    expect(await held()).toEqual([false, true, false]);
    expect(await profiles.facts(first!.id)).toBeNull();
    await profiles.prune({ ...wide, keep: 1 });
    expect(await of(['a', 'b'])).toEqual(['run/2/1']);
    await profiles.prune({ ...wide, olderThan: 250 });
    expect(await profiles.list({ repoId, after: 0, limit: 9 })).toEqual([]);
  });

  it('runs one worker at a time per subject, several side by side, and what waits in the order of its turn', async () => {
    const running = new Set<string>();
    let isDoubled = false;
    let widest = 0;
    const begun: string[] = [];
    const id = 1_000_000 + Date.now();
    const [crowded, lonely] = [id, id + 1];
    await open.store.repositories.see({ repoId: crowded, installationId: crowded, owner: 'crowd', name: 'a' });
    await open.store.repositories.see({ repoId: lonely, installationId: lonely, owner: 'lonely', name: 'b' });
    const pull = (repoId: number, number: number) => `pull-request/${repoId}/${number}`;
    for (let n = 1; n <= 5; n++) await open.queue.poke(pull(crowded, n));
    for (let n = 1; n <= 3; n++) await open.queue.poke(pull(crowded, 1));
    await open.queue.poke(`branch/${lonely}/1/1`);
    await open.queue.poke(pull(lonely, 1));
    await open.queue.poke(`comment/${crowded}/1`);
    await open.queue.work(
      async (subject) => {
        isDoubled ||= running.has(subject);
        running.add(subject);
        begun.push(subject);
        widest = Math.max(widest, running.size);
        // Asked for while it runs: it has seen what was there, so it runs once more.
        if (subject === pull(lonely, 1) && begun.filter((one) => one === subject).length === 1) await open.queue.poke(subject);
        await new Promise((resolve) => setTimeout(resolve, 30));
        running.delete(subject);
      },
      { light: 1, heavy: 1, portions: 1 },
    );
    await expect.poll(() => begun.length, { timeout: 20_000 }).toBe(9);
    expect(isDoubled).toBe(false);
    expect(widest).toBe(2);
    const heavy = begun.filter((subject) => !subject.startsWith('comment/'));
    // Whoever has one waiting comes before the second of whoever has five; the profile nobody waits for comes last.
    expect(heavy.slice(0, 3).sort()).toEqual([pull(crowded, 1), pull(lonely, 1), pull(lonely, 1)].sort());
    expect(heavy.slice(3)).toEqual([2, 3, 4, 5].map((n) => pull(crowded, n)).concat(`branch/${lonely}/1/1`));
  });
});

describe('the folder lock', () => {
  it('refuses a second owner in one clear sentence', () => {
    const folder = join(root, 'locked');
    const lock = lockFolder(folder);
    expect(() => lockFolder(folder)).toThrow(/the data folder .* is in use by process \d+/);
    lock.release();
    lockFolder(folder).release();
  });

  it('takes over the lock of a process that is gone', async () => {
    const folder = join(root, 'stale');
    const script = `import { lockFolder } from ${JSON.stringify(join(import.meta.dirname, '../../src/store/embedded/folder-lock.ts'))};
      lockFolder(${JSON.stringify(folder)}); console.log('locked'); setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise((resolve) => child.stdout.once('data', resolve));
    expect(() => lockFolder(folder)).toThrow(`process ${child.pid}`);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    lockFolder(folder).release();
  });

  it('is not fooled by a pid that was given to another process', () => {
    const folder = join(root, 'reused');
    const lock = lockFolder(folder);
    const path = join(folder, 'lock.json');
    const owner = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
    lock.release();
    writeFileSync(path, JSON.stringify({ ...owner, started: 'earlier' }));
    lockFolder(folder).release();
  });
});

describe('the spool', () => {
  it('keeps a delivery across a restart, once, and forgets it when released', async () => {
    const folder = spoolFolder(join(root, 'spooled'));
    const delivery = { guid: 'd-1', event: 'ping', receivedAt: 1, body: '{"zen":"…"}' };
    const spool = openSpool(folder);
    expect(await spool.accept(delivery)).toBe('accepted');
    expect(await spool.accept(delivery)).toBe('duplicate');
    expect(await openSpool(folder).accept(delivery)).toBe('accepted');
    const reader = readSpool(folder);
    expect(await reader.pending(10)).toEqual([delivery]);
    await reader.release('d-1');
    expect(await reader.pending(10)).toEqual([]);
  });

  it('sets damaged files aside', async () => {
    const folder = spoolFolder(join(root, 'damaged'));
    const reader = readSpool(folder);
    writeFileSync(join(folder, 'x.delivery.json'), '{');
    expect(await reader.pending(10)).toEqual([]);
    expect(await reader.pending(10)).toEqual([]);
  });
});
