import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type LoopbackGitHub, type PullHandle, type RepositoryHandle, startLoopbackGitHub } from '../../lab/loopback-github/index.ts';
import { renderMarkdown } from '../../lab/loopback-github/page/markdown.ts';
import { APP, installationOf, numbered, REPO } from './loopback-github-kit.ts';

const CHROMIUM = '/usr/bin/chromium';
const HOSTILE = [
  '<script>window.hit = 1</script><img src=x onerror="window.hit = 2"> <b style="position:fixed;inset:0" class="state" id="top" onclick="window.hit=3">bold</b>',
  '',
  '<a href="javascript:window.hit=4">a</a> [md](javascript:alert(1)) <a href="data:text/html,x">d</a> <iframe src="https://evil.test/f"></iframe>',
  '',
  '<style>body{display:none}</style><form action="https://evil.test"><input name=q><button>go</button></form><svg onload="window.hit=5"></svg>',
  '',
  '![pixel](https://evil.test/pixel.png)',
  '',
  '<!-- a hidden marker --> <link rel=stylesheet href="https://evil.test/c.css"><meta http-equiv=refresh content="0;url=https://evil.test">',
  '',
  '<details open><summary>more</summary>\n\n`@code` @someone <sub>small</sub> <kbd>K</kbd> ~~gone~~\n\n</details>',
].join('\n');

const place = { url: 'http://hub', repositoryUrl: 'http://hub/acme/train' };
const rendered = (text: string): string => renderMarkdown(text, place).text;

describe('Markdown', () => {
  test('keeps what GitHub keeps', () => {
    const text =
      '| a | b |\n|--:|:-:|\n| 1 | `x` |\n\n<details><summary>s</summary>\n\ntext\n\n</details>\n\n<sub>x</sub> <kbd>k</kbd>\n\n~~no~~ line\nbreak';
    const html = rendered(text);
    for (const part of [
      '<th align="right">a</th>',
      '<td align="center"><code>x</code></td>',
      '<details><summary>s</summary>',
      '<sub>x</sub>',
      '<kbd>k</kbd>',
      '<s>no</s>',
      '<br />',
    ]) {
      expect(html).toContain(part);
    }
  });

  test('drops what GitHub drops', () => {
    const html = rendered(HOSTILE);
    for (const part of [
      '<script',
      'window.hit',
      'onerror',
      'onclick',
      'style=',
      'id=',
      'class="state',
      'href="javascript',
      'href="data',
      '<iframe',
      '<style',
      '<form',
      '<input',
      '<svg onload',
      '<!--',
      '<img',
      '<link',
      '<meta',
    ]) {
      expect(html).not.toContain(part);
    }
    expect(html).toContain('<b>bold</b>');
  });

  test('shows mentions and references, but not inside code', () => {
    expect(rendered('hi @alice, see #3 `@bob #4`')).toBe(
      '<p>hi <a class="md-mention" href="http://hub/alice" rel="nofollow noopener noreferrer">@alice</a>, see <a href="http://hub/acme/train/pull/3">#3</a> <code>@bob #4</code></p>\n'.replace(
        ' rel="nofollow noopener noreferrer"',
        '',
      ),
    );
    expect(rendered('mail@example.org a/@b')).not.toContain('md-mention');
  });

  test('gives no comment the class names of the page', () => {
    expect(rendered('<span class="md-mention">x</span> <span class="sr">y</span>')).not.toContain('class');
  });

  test('colours differences', () => {
    expect(rendered('```diff\n-a\n+<b>\n```')).toContain('<span class="md-del">-a</span>\n<span class="md-add">+&lt;b&gt;</span>');
  });
});

describe('the page of a pull request', () => {
  let hub: LoopbackGitHub;
  let repo: RepositoryHandle;
  let pr: PullHandle;

  beforeEach(async () => {
    hub = await startLoopbackGitHub({ app: APP });
    repo = hub.addRepository({ owner: REPO.owner, name: REPO.repo, files: { 'train.py': numbered() } });
    const changes = { 'train.py': numbered({ 10: 'changed 10' }), '<b>.py': 'x\n' };
    pr = repo.openPullRequest({ author: 'alice', branch: 'feat', title: '<i>Faster</i>', body: 'The **why**.', changes });
    const { rest } = await installationOf(hub, repo);
    await rest.issues.createComment({ ...REPO, issue_number: pr.number, body: '<!-- marker -->\n### ⚠️ 3 causes\n\n| a |\n|--:|\n| 1 |' });
    const said = repo.comment(pr, 'mallory', HOSTILE);
    await rest.reactions.createForIssueComment({ ...REPO, comment_id: said.id, content: 'eyes' });
    await rest.checks.create({
      ...REPO,
      name: 'NPU Advisor',
      head_sha: pr.headSha,
      conclusion: 'failure',
      output: {
        title: 'Slower by 9 %',
        summary: 'The **summary**.',
        text: 'The _text_.',
        annotations: [
          {
            path: 'train.py',
            start_line: 10,
            end_line: 10,
            annotation_level: 'failure',
            title: 'Stall',
            message: 'Set <workers>',
            raw_details: 'row 1',
          },
        ],
      },
      actions: [{ label: 'Acknowledge all', description: 'd', identifier: 'ack' }],
    });
    await rest.pulls.createReview({
      ...REPO,
      pull_number: pr.number,
      event: 'COMMENT',
      comments: [{ path: 'train.py', line: 10, side: 'RIGHT', body: 'Why:\n\n```suggestion\nbetter <10>\n```\n\nCareful.' }],
    });
    repo.addWorkflowRun({ pr, name: 'perf' });
  });

  afterEach(async () => {
    await hub.close();
  });

  test('has everything a reviewer sees', async () => {
    const answer = await fetch(`${hub.url}/acme/train/pull/${pr.number}`);
    const html = await answer.text();
    expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'nonce-/);
    const parts = [
      ...['&lt;i&gt;Faster&lt;/i&gt;', 'The <strong>why</strong>.', '3 causes', '<th align="right">a</th>', 'aria-label="eyes"'],
      ...[
        'Some checks were not successful',
        'Slower by 9 %',
        'The <strong>summary</strong>.',
        'The <em>text</em>.',
        'Set &lt;workers&gt;',
        'row 1',
      ],
      ...[
        'Acknowledge all',
        'Suggested change',
        'better &lt;',
        'Careful.',
        'train.py#L10',
        '&lt;b&gt;.py',
        '@@ -7,7 +7,7 @@ line 6',
        'perf (pull_request)',
      ],
    ];
    expect(parts.filter((part) => !html.includes(part))).toEqual([]);
    expect(
      ['marker', 'evil.test/f', 'evil.test/pixel', 'window.hit', '<i>Faster', '<script'].filter((part) => html.includes(part)),
    ).toEqual([]);
    expect(hub.violations).toEqual([]);
  });

  test('leads on: tabs, files, commits, runs, lists', async () => {
    const run = repo.addWorkflowRun({ pr });
    repo.addArtifact(run, { name: 'npu-profile', zipBuffer: Buffer.alloc(2048) });
    const get = async (path: string) => {
      const answer = await fetch(`${hub.url}${path}`, { redirect: 'manual' });
      return [answer.status, answer.headers.get('location') ?? (await answer.text())] as const;
    };
    const [check] = hub.view(pr).checks;
    expect(await get('/')).toEqual([200, expect.stringContaining('acme/train')]);
    expect(await get('/acme/train/pulls')).toEqual([200, expect.stringContaining('#1 opened')]);
    expect(await get('/acme/train/pull/1/files')).toEqual([302, '/acme/train/pull/1#files']);
    expect(await get(`/acme/train/runs/${check?.id}`)).toEqual([302, `/acme/train/pull/1#check-${check?.id}`]);
    expect(await get(`/acme/train/blob/${pr.headSha}/train.py`)).toEqual([200, expect.stringContaining('id="L10"')]);
    expect(await get(`/acme/train/commit/${pr.headSha}`)).toEqual([200, expect.stringContaining('changed 10')]);
    expect(await get(`/acme/train/actions/runs/${run.id}`)).toEqual([200, expect.stringContaining('npu-profile')]);
    expect(await get('/acme/train/pull/9')).toEqual([404, 'Not Found']);
    expect(await get('/acme/other')).toEqual([404, 'Not Found']);
  });

  test.skipIf(!existsSync(CHROMIUM))('runs nothing and asks nobody, in both themes', async () => {
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
    try {
      const backgrounds: string[] = [];
      for (const colorScheme of ['light', 'dark'] as const) {
        const page = await browser.newPage({ colorScheme, viewport: { width: 1280, height: 900 } });
        const origins = new Set<string>();
        const complaints: string[] = [];
        page.on('request', (request) => origins.add(new URL(request.url()).origin));
        page.on('console', (message) => complaints.push(message.text()));
        await page.goto(`${hub.url}/acme/train/pull/${pr.number}`);
        expect(await page.evaluate('window.hit')).toBeUndefined();
        expect([...origins]).toEqual([hub.url]);
        expect(complaints).toEqual([]);
        expect(await page.locator('#conversation').isVisible()).toBe(true);
        expect(await page.locator('#checks').isVisible()).toBe(false);
        await page.locator('.tabs a.t-checks').click();
        expect(await page.locator('#checks .check-run').isVisible()).toBe(true);
        expect(await page.locator('#conversation').isVisible()).toBe(false);
        await page.setViewportSize({ width: 390, height: 800 });
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
        backgrounds.push(await page.evaluate('getComputedStyle(document.body).backgroundColor'));
        await page.close();
      }
      expect(backgrounds).toEqual(['rgb(255, 255, 255)', 'rgb(13, 17, 23)']);
    } finally {
      await browser.close();
    }
  });
});
