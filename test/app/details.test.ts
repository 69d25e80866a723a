/* The report behind its link: who may open it, until when, and what the page is held to. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PullHandle, RepositoryHandle } from '../../lab/loopback-github/index.ts';
import { inWished, packPage, unpackPage } from '../../src/app/details/content.ts';
import { createDetailsLinks, createLinkReader, pageOf } from '../../src/app/details/link.ts';
import { createDetailsServer, type DetailsServer } from '../../src/app/details/serve-details.ts';
import { readEnv } from '../../src/app/env.ts';
import { prune } from '../../src/app/jobs/sweep.ts';
import { createFront } from '../../src/github/front.ts';
import { createLogger, scrub } from '../../src/github/log.ts';
import type { Report } from '../../src/model/report.ts';
import { inOther, textsOf } from '../../src/report/texts.ts';
import { HOSTILE, reportOf } from '../render/hostile.ts';
import { caseA, SHA } from '../render/reports.ts';
import { type Jobs, openJobs } from './support/jobs.ts';
import { addRun, linksIn, ONE_FINDING, openPull } from './support/world.ts';
import { makeZip } from './support/zip.ts';

const SECRET = 's'.repeat(40);
const OLD_SECRET = 'o'.repeat(40);
const DAY = 24 * 3600 * 1000;
const CHROMIUM = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The front with pages and nothing behind it. */
function frontOf(details: DetailsServer): Server {
  const common = { secret: SECRET, previousSecret: null, problem: async () => null, log: createLogger('silent') };
  return createServer(createFront({ ...common, middleware: (_, response) => response.end('webhook'), details: details.handle }));
}

describe('a link', () => {
  const at = Date.parse('2026-11-30T12:00:00Z');
  const subject = { repoId: 77, pr: 5, sha: SHA, job: null };
  const page = pageOf(subject);
  const address = createDetailsLinks('https://advisor.example/npu', SECRET, 30).addressOf(77, page, at);
  const path = address.split('/details/')[1]!;
  const read = createLinkReader([SECRET]);

  it('opens what it was made for, and tells nothing of it', () => {
    expect(address).toMatch(/^https:\/\/advisor\.example\/npu\/details\/77\/[\w-]{22}\/\d{10}\/[\w-]{8}\/[\w-]{43}$/);
    expect(read(path)).toEqual({ repoId: 77, page, expiresAt: at });
    expect(address).not.toContain(SHA.slice(0, 7));
    expect(scrub(`GET ${address} failed`)).toBe('GET https://advisor.example/npu[secret] failed');
    const others = [{ pr: 6 }, { repoId: 78 }, { sha: SHA.replace('3', '4') }, { job: 'pretrain' }].map((other) =>
      pageOf({ ...subject, ...other }),
    );
    expect(new Set([page, ...others]).size).toBe(5);
  });

  it('is worth nothing when any of its parts is another', () => {
    const [repo, name, expires, key, signature] = path.split('/') as [string, string, string, string, string];
    const turned = (text: string): string => text.slice(0, -1) + (text.endsWith('A') ? 'B' : 'A');
    const forged = [
      ['78', name, expires, key, signature],
      [`0${repo}`, name, expires, key, signature],
      [repo, turned(name), expires, key, signature],
      [repo, name, String(Number(expires) + 1), key, signature],
      [repo, name, `0${expires}`, key, signature],
      [repo, name, expires, turned(key), signature],
      // The last character holds four bits of the signature; the other two change nothing that is decoded.
      ...[...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
        .filter((last) => last !== signature.at(-1))
        .map((last) => [repo, name, expires, key, signature.slice(0, -1) + last]),
      [repo, name, expires, key, signature.slice(0, -1)],
      [repo, name, expires, key, `${signature}=`],
      [repo, name, expires, key],
      [repo, name, expires, key, signature, 'x'],
      [repo, name, expires, key, 'a'.repeat(5000)],
    ].map((parts) => parts.join('/'));
    for (const other of forged) expect(read(other), other.slice(0, 120)).toBeNull();
    expect(read('')).toBeNull();
  });

  it('works with the secret that is being replaced, and with no other', () => {
    expect(createLinkReader(['n'.repeat(40), SECRET])(path)).not.toBeNull();
    expect(createLinkReader(['n'.repeat(40)])(path)).toBeNull();
  });
});

describe('the settings', () => {
  const base = { APP_ID: '1', WEBHOOK_SECRET: SECRET, PRIVATE_KEY: '-----BEGIN X PRIVATE KEY-----' };
  const publicUrl = (url: string): string | null => readEnv({ ...base, NPU_ADVISOR_PUBLIC_URL: url }).publicUrl;

  it('take an https address, or http on this machine; without one there are no links', () => {
    expect(publicUrl('https://advisor.example/')).toBe('https://advisor.example');
    expect(publicUrl('https://advisor.example:8443/npu/')).toBe('https://advisor.example:8443/npu');
    expect(publicUrl('http://127.0.0.1:3000')).toBe('http://127.0.0.1:3000');
    expect(publicUrl('')).toBeNull();
    for (const bad of [
      'http://advisor.example',
      'advisor.example',
      'https://u:p@advisor.example',
      'https://advisor.example/?x',
      'https://a.example/#x',
      'javascript:alert(1)',
      'http://127.0.0.1.evil.example',
    ])
      expect(() => publicUrl(bad), bad).toThrow(/NPU_ADVISOR_PUBLIC_URL/);
    expect(() => readEnv({ ...base, NPU_ADVISOR_LINK_DAYS: '365' })).toThrow(/NPU_ADVISOR_LINK_DAYS/);
  });
});

describe('a page', () => {
  const links = createDetailsLinks('https://advisor.example/npu', SECRET, 30);
  const kept = new Map<string, { version: string; content: Uint8Array }>();
  let reads = 0;
  let isAway = false;
  const details = createDetailsServer({
    secrets: [SECRET, OLD_SECRET],
    publicUrl: 'https://advisor.example/npu',
    linkDays: 30,
    log: createLogger('silent'),
    async read(repoId, page, known) {
      reads++;
      if (isAway) throw new Error('the store does not answer');
      const found = kept.get(`${repoId}/${page}`);
      return found === undefined ? null : { version: found.version, content: found.version === known ? null : found.content };
    },
  });
  const server = frontOf(details);
  let url = '';
  beforeAll(async () => {
    url = await listening(server);
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await details.close();
  });

  async function keep(report: Report, pr: number, other: Report | null = null, isLangSaid = false): Promise<string> {
    const context = { pr, sha: SHA, htmlBase: 'https://github.com/acme/bert', fromFork: pr === 2 };
    const { version, pack } = packPage({ report, isLangSaid, context }, other);
    const page = pageOf({ repoId: 9, pr, sha: SHA, job: null });
    kept.set(`9/${page}`, { version, content: (await pack())! });
    return links.addressOf(9, page, Date.now() + DAY).replace('https://advisor.example/npu', url);
  }

  it('comes with all that keeps it to itself, whole or zipped, in both spellings of its path', async () => {
    const address = await keep(caseA('zh').report, 1);
    const response = await fetch(address);
    const text = await response.text();
    expect(response.status).toBe(200);
    const { headers } = response;
    expect(Object.fromEntries([...headers].filter(([name]) => /^(referrer|x-|cache|cross|vary|content-type)/.test(name)))).toEqual({
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-robots-tag': 'noindex, nofollow, noarchive',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'private, max-age=60',
      vary: 'accept-encoding, accept-language',
      'content-type': 'text/html; charset=utf-8',
    });
    const policy = headers.get('content-security-policy')!;
    expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-[\w+/=]+'/);
    expect(policy).toContain("frame-ancestors 'none'; sandbox");
    expect(policy).not.toMatch(/script-src[^;]*(?:unsafe|https?:|\*)/);
    expect(text).toContain('<html lang="zh-Hans">');
    // The line in the repository, and where the page stands.
    expect(text).toContain(`https://github.com/acme/bert/blob/${SHA}/`);
    expect(text).toContain(`PR 1，提交 <code lang="en">${SHA.slice(0, 7)}</code>`);
    const before = reads;
    const head = await fetch(address, { method: 'HEAD' });
    expect([head.status, await head.text(), head.headers.get('content-length')]).toEqual([200, '', headers.get('content-length')]);
    const plain = await fetch(address.replace('/details/', '/npu/details/'), { headers: { 'accept-encoding': 'identity' } });
    expect([plain.headers.get('content-encoding'), await plain.text()]).toEqual([null, text]);
    expect(reads - before).toBe(2);
  });

  it('is in the language that is asked for, else that of the settings, else that of the browser', async () => {
    const [en, zh] = [caseA('en').report, caseA('zh').report];
    const shown = async (address: string, accepted = '*'): Promise<string> => {
      const text = await (await fetch(address, { headers: { 'accept-language': accepted } })).text();
      return `${/<html lang="([\w-]+)">/.exec(text)![1]} ${/id="language" href="([^"]+)"/.exec(text)?.[1] ?? 'alone'}`;
    };
    const [inEnglish, inChinese] = ['en ?lang=zh', 'zh-Hans ?lang=en'];
    const free = await keep(en, 50, zh);
    for (const [address, accepted, wanted] of [
      [free, '*', inEnglish],
      [free, 'fr, en;q=0.3, zh-CN;q=0.8', inChinese],
      [free, 'zh;q=0, en', inEnglish],
      [`${free}?lang=zh`, 'en', inChinese],
      [`${free}?lang=en`, 'zh', inEnglish],
      [`${free}?lang=xx`, 'zh-TW', inChinese],
    ] as const)
      expect(await shown(address, accepted), `${accepted} ${address.slice(-8)}`).toBe(wanted);
    const said = await keep(en, 51, zh, true);
    expect([await shown(said, 'zh'), await shown(`${said}?lang=zh`, 'en')]).toEqual([inEnglish, inChinese]);
    // Kept by a version that knew one language.
    const old = await keep(en, 52);
    expect([await shown(old, 'zh'), await shown(`${old}?lang=zh`)]).toEqual(['en alone', 'en alone']);
    expect(inOther(en, textsOf(en, zh))).toEqual(zh);
    const { version, content } = kept.get([...kept.keys()].find((key) => free.includes(key))!)!;
    const whole = JSON.stringify(inWished(unpackPage(content)!, { asked: 'zh', browser: null }).report);
    expect([version.length, whole]).toEqual([
      22,
      JSON.stringify(unpackPage((await packPage({ report: zh, context: {} as never }).pack())!)!.report),
    ]);
  });

  it('that is not there is told from a forged link by nobody', async () => {
    const address = await keep(caseA('en').report, 1);
    const wrong = address.slice(0, -2) + (address.endsWith('AA') ? 'BB' : 'AA');
    const shown = async (response: Response): Promise<unknown[]> => [
      response.status,
      await response.text(),
      [...response.headers].filter(([name]) => name !== 'date'),
    ];
    const nowhere = await shown(await fetch(`${url}/nowhere`));
    expect(nowhere[0]).toBe(404);
    const before = reads;
    for (const [path, method] of [
      [wrong, 'GET'],
      [wrong, 'POST'],
      [`${url}/details/9/x`, 'GET'],
      [`${url}/details`, 'GET'],
      [address.replace('/details/9/', '/details/10/'), 'GET'],
    ] as const)
      expect(await shown(await fetch(path, { method })), path).toEqual(nowhere);
    // Nothing was looked up for them.
    expect(reads).toBe(before);
    expect((await fetch(address, { method: 'POST', body: 'x' })).status).toBe(405);
  });

  it('whose link has ended, or that is no longer kept, says how to get another, in both languages', async () => {
    const address = await keep(caseA('en').report, 1);
    const page = address.split('/details/9/')[1]!.split('/')[0]!;
    const ended = createDetailsLinks(url, OLD_SECRET, 30).addressOf(9, page, Date.now() - 1000);
    const before = reads;
    const response = await fetch(ended);
    const text = await response.text();
    expect([response.status, response.headers.get('cache-control')]).toEqual([410, 'no-store']);
    expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/);
    expect(text).toContain('<code>/npu-advise run</code>');
    expect(text).toContain('链接已失效');
    expect(text).not.toContain('acme');
    expect(reads).toBe(before);
    expect((await fetch(address)).status).toBe(200);
    kept.clear();
    // It was in memory a moment ago.
    const erased = await fetch(address);
    expect([erased.status, await erased.text()]).toEqual([410, text]);
  });

  it('shows what was acknowledged meanwhile, and stays away while the store does', async () => {
    const { report } = caseA('en');
    const address = await keep(report, 3);
    const first = await (await fetch(address)).text();
    await keep({ ...report, verdict: { ...report.verdict }, notes: [...report.notes, 'said later'] }, 3);
    expect(first).not.toContain('said later');
    expect(await (await fetch(address)).text()).toContain('said later');
    isAway = true;
    const away = await fetch(address);
    expect([away.status, away.headers.get('retry-after')]).toEqual([503, '5']);
    isAway = false;
    kept.set([...kept.keys()].at(-1)!, { version: 'damaged', content: Buffer.from('no gzip') });
    expect((await fetch(address)).status).toBe(503);
    kept.set([...kept.keys()].at(-1)!, {
      version: 'foreign',
      content: await packPage({ report: { schema: 'x', views: {} } as never, context: {} as never })
        .pack()
        .then((b) => b!),
    });
    expect((await fetch(address)).status).toBe(410);
  });

  it('is one at a time, and beyond a few the next is asked to come again; the webhook does not wait', async () => {
    const addresses = await Promise.all(Array.from({ length: 14 }, (_, i) => keep(reportOf(`op-${i}`), 100 + i)));
    let made = 0;
    const answers = addresses.map(async (address) => {
      const { status } = await fetch(address);
      if (status === 200) made++;
      return status;
    });
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect(made).toBeLessThan(8);
    const statuses = await Promise.all(answers);
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(8);
    expect(statuses.filter((status) => status === 503).length).toBeGreaterThanOrEqual(1);
    expect(statuses.every((status) => status === 200 || status === 503)).toBe(true);
  });

  it.skipIf(!existsSync(CHROMIUM))(
    'runs under its policy in Chromium: nothing to complain of, nothing asked for, hostile names inert',
    async () => {
      const { report } = caseA('en');
      const hostile = reportOf(HOSTILE.join(' '));
      const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
      try {
        for (const [of, pr] of [
          [report, 1],
          [hostile, 2],
        ] as const) {
          const address = await keep(of, pr);
          const page = await browser.newPage();
          const asked: string[] = [];
          const trouble: string[] = [];
          page.on('request', (request) => asked.push(request.url()));
          page.on('console', (message) => trouble.push(message.text()));
          page.on('pageerror', (error) => trouble.push(error.message));
          page.on('dialog', (dialog) => trouble.push(dialog.message()));
          await page.goto(address);
          expect(trouble).toEqual([]);
          expect(asked.filter((request) => !request.endsWith('/favicon.ico'))).toEqual([address]);
          // Its style and script have run: the bars have widths, the button that needs a script is there.
          const bar = page.locator('#verdict .bar span').first();
          if (pr === 1) expect((await bar.boundingBox())!.width).toBeGreaterThan(20);
          expect(await page.locator('#theme').isVisible()).toBe(true);
          await page.locator('#theme').click();
          expect(trouble).toEqual([]);
          // In its box it is nobody: what else is served under this name is as foreign as the rest of the web.
          expect(await page.evaluate('self.origin')).toBe('null');
          await page.close();
        }
      } finally {
        await browser.close();
      }
    },
  );
});

describe('what is kept', () => {
  it('loses its timeline before it grows beyond its bounds, and the page says so', async () => {
    // What cannot be compressed.
    const noise = randomBytes(4_500_000).toString('base64');
    const { report } = caseA('en');
    const context = { pr: 1, sha: SHA, htmlBase: null, fromFork: true };
    const large = { ...report, views: { ...report.views, timeline: noise } };
    const content = unpackPage((await packPage({ report: large, context }).pack())!)!;
    expect(content.leftOut).toEqual(['timeline']);
    expect(content.report).toEqual(report);
    const endless = { ...large, views: { other: noise } };
    expect(unpackPage((await packPage({ report: endless, context }).pack())!)).toMatchObject({
      leftOut: ['charts'],
      report: { views: {} },
    });
    const { renderHtml } = await import('../../src/render/html/page.ts');
    expect(renderHtml(report, undefined, { ...context, leftOut: ['timeline'] })).toContain('Left out of this page for its size: timeline.');
    expect(renderHtml(report, undefined, { ...context, leftOut: [] })).toContain('profile reported by a fork run');
  });
});

describe('a pull request', () => {
  let jobs: Jobs;
  let details: DetailsServer;
  let server: Server;
  let url = '';
  let repository: RepositoryHandle;
  beforeAll(async () => {
    jobs = await openJobs();
    repository = jobs.hub.addRepository({ owner: 'acme', name: 'secret', private: true, files: { 'train.py': 'import torch\n' } });
    repository.setPermission('maintainer', 'write');
    const { deps } = jobs;
    const common = { secrets: ['x'.repeat(40)], publicUrl: 'https://advisor.example', linkDays: 30, log: deps.log, now: deps.now };
    details = createDetailsServer({ ...common, read: deps.store.pages.read });
    server = frontOf(details);
    url = await listening(server);
  });
  afterAll(async () => {
    server?.closeAllConnections();
    server?.close();
    await details?.close();
    await jobs?.close();
  });

  const open = (address: string): Promise<Response> => fetch(address.replace('https://advisor.example', url));
  const profiled = async (pull: PullHandle): Promise<void> => {
    await jobs.take('pull_request', { action: 'opened', pr: pull });
    await jobs.take('workflow_run', { action: 'completed', run: addRun({ repository }, pull, ONE_FINDING) });
  };
  const linkOf = (pull: PullHandle): string => linksIn(jobs.hub.view(pull).comments[0]!.body)[0]!;

  it('has one link in comment, check and its details; said again it is the same; it is renewed before it ends', async () => {
    const pull = openPull({ repository });
    await profiled(pull);
    const view = jobs.hub.view(pull);
    const [link, ...more] = linksIn(view.comments[0]!.body);
    expect(more).toEqual([]);
    expect(view.comments[0]!.body).toContain(`[full report](${link})`);
    expect(linksIn(view.checks[0]!.summary)).toEqual([link]);
    expect(view.checks[0]!.detailsUrl).toBe(link);
    expect(view.comments[0]!.body.length).toBeLessThan(4000);

    // Accepted since: the page says so, too, under the same link.
    await jobs.take('issue_comment', {
      action: 'created',
      comment: repository.comment(pull, 'maintainer', '/npu-advise ack 1 known since spring'),
    });
    expect(linkOf(pull)).toBe(link);
    const page = await (await open(link!)).text();
    expect(page).toContain('known since spring');
    expect(page).toContain('<code lang="en">maintainer</code>');
    expect(page).toMatch(/94\u00a0ms/);

    jobs.advance(27 * DAY);
    await jobs.sweep();
    const renewed = linkOf(pull);
    expect(renewed).not.toBe(link);
    expect((await open(link!)).status).toBe(200);
    jobs.advance(4 * DAY);
    await jobs.sweep();
    await prune(jobs.deps);
    expect((await open(link!)).status).toBe(410);
    expect((await open(renewed)).status).toBe(200);
    expect(linkOf(pull)).toBe(renewed);
    expect(jobs.hub.view(pull).comments.filter(({ viaApp }) => viaApp)).toHaveLength(1);

    // Of a pull request that is closed nothing is renewed, and what no link leads to goes.
    repository.closePullRequest(pull);
    await jobs.take('pull_request', { action: 'closed', pr: pull });
    jobs.advance(31 * DAY);
    await jobs.sweep();
    await prune(jobs.deps);
    expect((await open(renewed)).status).toBe(410);
    expect(await jobs.deps.store.database.query('SELECT 1 FROM npu_advisor.pages')).toEqual([]);
  });

  it('with several jobs has a page for each, and in the check that of the one that fails', async () => {
    const config = 'jobs:\n  bert: { paths: [bert/*] }\n  gpt: { paths: [gpt/*], gate: { severity: medium } }\n';
    const files = { 'bert/train.py': '1\n', 'gpt/train.py': '1\n', '.github/npu-advisor.yml': config };
    const several = jobs.hub.addRepository({ owner: 'acme', name: 'several', files });
    const changes = { 'bert/train.py': '2\n', 'gpt/train.py': '2\n' };
    const pull = several.openPullRequest({ author: 'alice', branch: 'both', title: 'both', changes });
    const run = several.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'success' });
    for (const job of ['bert', 'gpt'])
      several.addArtifact(run, {
        name: `npu-profile-${job}`,
        zipBuffer: makeZip({ 'prof/plan.json': JSON.stringify({ findings: [{ id: `cause-of-${job}` }] }) }),
      });
    await jobs.take('workflow_run', { action: 'completed', run });
    const view = jobs.hub.view(pull);
    const found = linksIn(view.comments[0]!.body);
    expect(found).toHaveLength(2);
    for (const link of found) {
      const text = await (await open(link)).text();
      const names = ['cause-of-bert', 'cause-of-gpt'].filter((name) => text.includes(name));
      expect(names).toHaveLength(1);
      if (link === view.checks[0]!.detailsUrl) expect(names).toEqual(['cause-of-gpt']);
    }
    expect(found).toContain(view.checks[0]!.detailsUrl);

    // Also where the artifacts are gone: the text stays, its links end later.
    jobs.advance(27 * DAY);
    await jobs.sweep();
    const after = jobs.hub.view(pull);
    const renewed = linksIn(after.comments[0]!.body);
    expect(renewed).toHaveLength(2);
    expect(renewed.filter((link) => found.includes(link))).toEqual([]);
    expect(renewed).toContain(after.checks[0]!.detailsUrl);
    expect(linksIn(after.checks[0]!.summary).filter((link) => found.includes(link))).toEqual([]);
    expect(after.checks[0]!.conclusion).toBe(view.checks[0]!.conclusion);
    jobs.advance(4 * DAY);
    await prune(jobs.deps);
    for (const link of renewed) expect((await open(link)).status).toBe(200);
    expect((await open(found[0]!)).status).toBe(410);
  });

  it('whose repository leaves takes its page with it', async () => {
    const pull = openPull({ repository });
    await profiled(pull);
    const link = linkOf(pull);
    expect((await open(link)).status).toBe(200);
    const removal = { action: 'removed' as const, owner: repository.owner, repositories: [repository] };
    repository.uninstall();
    await jobs.take('installation_repositories', removal);
    await jobs.sweep();
    expect((await open(link)).status).toBe(410);
  });
});
