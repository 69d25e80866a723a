/* A store that an earlier version has filled is taken over with everything in it, on both kinds of store. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { startTemporaryPostgres } from '../../lab/postgres/index.ts';
import { startStoreClock } from '../../src/store/clock.ts';
import { openEmbeddedFiles } from '../../src/store/embedded/database.ts';
import { openSpool, readSpool } from '../../src/store/embedded/spool.ts';
import { openInboxWithFallback } from '../../src/store/inbox.ts';
import { openForReading, openStore } from '../../src/store/open.ts';
import { openPostgres, reachPostgres } from '../../src/store/postgres/database.ts';
import { openPostgresInbox } from '../../src/store/postgres/inbox.ts';

const root = mkdtempSync(join(tmpdir(), 'npu-upgrade-'));
const postgres = await startTemporaryPostgres();
afterAll(async () => {
  await postgres?.stop();
  rmSync(root, { recursive: true, force: true });
});

const fixture = readFileSync(join(import.meta.dirname, 'fixtures', 'schema-3.sql'), 'utf8');
const stores: [string, string | null][] = [
  ['embedded', null],
  ...(postgres === null ? [] : [['postgres', postgres.url] as [string, string]]),
];

describe.each(stores)('the %s store of schema 3', (name, databaseUrl) => {
  it('is taken over with all its history', async () => {
    const dataDir = join(root, name);
    mkdirSync(dataDir);
    const old = databaseUrl === null ? await openEmbeddedFiles(dataDir) : openPostgres(databaseUrl, 1);
    await old.execute(fixture);
    await old.close();

    const opened = await openForReading({ databaseUrl, dataDir });
    const { store } = opened;
    try {
      expect(await store.deliveries.known(['guid-1', 'guid-2', 'guid-3'])).toEqual(new Set(['guid-1', 'guid-2']));
      expect(await store.requests.pending('pull-request/7/3')).toMatchObject([{ origin: 'guid-2', payload: { pr: 3 }, attempts: 2 }]);
      expect(await store.requests.pendingSubjects(9)).toEqual(['pull-request/7/3']);
      expect(await store.requests.reopen('guid-3')).toEqual(['pull-request/7/4']);
      expect(await store.installations.find(100)).toMatchObject({ account: '算力', suspended: true });
      expect(await store.checks.find(7, 'aaa', 3)).toMatchObject({
        checkRunId: 1234567890123,
        conclusion: 'neutral',
        hasReport: true,
        pr: 3,
      });
      expect((await store.checks.overdue(1796047000000, 9)).map(({ sha }) => sha)).toEqual(['bbb']);
      expect(await store.checks.find(8, 'ccc', 1)).toMatchObject({ owner: '算力', repo: '训练', phase: 'in_progress', deadlineAt: null });
      expect(await store.pullRequests.find(7, 3)).toMatchObject({
        commentId: 3300000001,
        reportedSha: 'aaa',
        findings: [{ id: 'slow-rank:5', title: '卡 5 慢', saving: { likely: 12, ceiling: 20 } }],
        suggested: ['slow-rank:5'],
      });
      expect(await store.reports.get('key-1')).toMatchObject({ findings: [{ id: 'slow-rank:5' }] });
      expect(await store.marks.read('alive')).toBe(1796047000000);
      const kept = await store.profiles.list({ after: 0, limit: 1000 });
      expect(kept).toHaveLength(401);
      expect(kept[399]).toMatchObject({
        sha: 'sha-400',
        branch: 'main',
        trusted: true,
        metrics: { stepTimeMs: 1200 },
        recordedAt: 1796024000000,
      });
      expect(Buffer.from((await store.profiles.facts(kept[0]!.id))!).toString()).toBe('hello  ');
      // What the newer version knows of besides is filled from what was there.
      expect((await store.repositories.list()).map(({ repoId, installationId, owner }) => [repoId, installationId, owner])).toEqual([
        [7, 99, 'acme'],
        [8, 100, '算力'],
      ]);
    } finally {
      await opened.close();
    }
  });
});

describe.skipIf(postgres === null)('processes on one PostgreSQL', () => {
  const delivery = (guid: string, receivedAt = 1) => ({ guid, event: 'push', receivedAt, body: '{}' });

  it('share what was accepted: each delivery is taken by one of them, and again when that one is gone', async () => {
    const options = { retryLimit: 1, retryDelaySeconds: 0, expireSeconds: 60, onError: () => undefined };
    const opened = await openStore({ databaseUrl: postgres!.url, dataDir: join(root, 'serve'), ...options });
    const [one, two] = [openPostgres(postgres!.url, 1), openPostgres(postgres!.url, 1)];
    const [a, b] = [openPostgresInbox(one), openPostgresInbox(two)];
    try {
      for (let i = 0; i < 20; i++) await a.accept(delivery(`shared-${i}`, i));
      const [first, second] = await Promise.all([a.pending(10), b.pending(10)]);
      const guids = [...first, ...second].map(({ guid }) => guid);
      expect(new Set(guids).size).toBe(20);
      expect(first.map(({ receivedAt }) => receivedAt)).toEqual(first.map(({ receivedAt }) => receivedAt).sort((x, y) => x - y));
      for (const { guid } of first) await a.release(guid);
      expect(await a.pending(100)).toEqual([]);
      await one.query('UPDATE npu_advisor.deliveries SET taken_at = taken_at - 60000');
      expect((await a.pending(100)).map(({ guid }) => guid).sort()).toEqual(second.map(({ guid }) => guid).sort());
      // Sent again by hand: taken up once more.
      expect(await a.accept(delivery(first[0]!.guid))).toBe('duplicate');
      expect((await b.pending(100)).map(({ guid }) => guid)).toEqual([first[0]!.guid]);
    } finally {
      for (const { guid } of await one.query<{ guid: string }>('SELECT guid FROM npu_advisor.deliveries')) await a.release(guid);
      await Promise.all([one.close(), two.close()]);
      await opened.queue.drain(1000);
      await opened.close();
    }
  });

  it('keep deliveries on disk while it is away, notice a lost lock, and go on when it is back', async () => {
    const database = openPostgres(postgres!.url, 2);
    const spool = join(root, 'spool');
    const inbox = openInboxWithFallback(openPostgresInbox(database), openSpool(spool), () => undefined);
    let hasBegun: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => {
      hasBegun = resolve;
    });
    let end: () => void = () => undefined;
    const held = database.exclusively('k', async () => {
      hasBegun();
      await new Promise<void>((resolve) => {
        end = resolve;
      });
    });
    await begun;
    const accepted = async (): Promise<string[]> => (await readSpool(spool).pending(9)).map(({ guid }) => guid);
    const restarting = postgres!.restart('immediate', 300);
    await expect
      .poll(
        () =>
          database.query('SELECT 1').then(
            () => true,
            () => false,
          ),
        { timeout: 10_000 },
      )
      .toBe(false);
    expect(await inbox.accept(delivery('while-away'))).toBe('accepted');
    expect(await accepted()).toEqual(['while-away']);
    await restarting;
    end();
    await expect(held).rejects.toThrow(/the lock k was lost/);
    await new Promise((resolve) => setTimeout(resolve, 1100));
    expect(await inbox.accept(delivery('when-back'))).toBe('accepted');
    expect(await accepted()).toEqual(['while-away']);
    await inbox.close();
    await database.close();
  });

  it('go by its clock, not by their own', async () => {
    const database = openPostgres(postgres!.url, 1);
    const clock = await startStoreClock(database, () => Date.now() - 3_600_000);
    clock.stop();
    await database.close();
    expect(Math.abs(clock.behindMs - 3_600_000)).toBeLessThan(2000);
    expect(Math.abs(clock.now() - Date.now())).toBeLessThan(2000);
  });
});

describe('a PostgreSQL that is not there', () => {
  it('is said in one sentence, without its password', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    await new Promise((resolve) => server.close(resolve));
    const said = await reachPostgres(`postgres://npu:geheim@127.0.0.1:${port}/x`, 0).catch((error: Error) => error);
    expect(String(said)).toMatch(/PostgreSQL of DATABASE_URL cannot be reached \(ECONNREFUSED\)/);
    expect(JSON.stringify(said)).not.toContain('geheim');
  });
});
