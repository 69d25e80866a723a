import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { PullHandle, PullView, RepositoryHandle } from '../../lab/loopback-github/index.ts';
import { eventPermissions, requiredPermissions } from '../../lab/loopback-github/permissions.ts';
import { COMMENT_MARKER } from '../../src/github/publish/comment.ts';
import type { Plan } from './support/fake-analyser.ts';
import {
  addRun,
  createWorld,
  isConcluded,
  linksIn,
  ONE_FINDING,
  openPull,
  type ServerProcess,
  TRAIN_PY,
  until,
  untilQuiet,
  type World,
} from './support/world.ts';
import { makeZip } from './support/zip.ts';

/** Where the proxy in front of the server would be. */
const PUBLIC_URL = 'https://advisor.example';

let world: World;
let server: ServerProcess;
beforeAll(async () => {
  world = await createWorld();
  server = await world.start({
    NPU_ADVISOR_MAX_ARTIFACT_MB: '2',
    NPU_ADVISOR_ANALYSIS_TIMEOUT_S: '15',
    NPU_ADVISOR_ANALYSIS_MEMORY_MB: '300',
    NPU_ADVISOR_ATTEMPTS: '2',
    NPU_ADVISOR_ANALYSES: '2',
    NPU_ADVISOR_COMMANDS_PER_HOUR: '20',
    NPU_ADVISOR_PUBLIC_URL: PUBLIC_URL,
    NODE_OPTIONS: `--import=${join(import.meta.dirname, 'support/record-connections.mjs')}`,
  });
});
afterAll(() => world.close());
afterEach(() => {
  expect(world.hub.violations).toEqual([]);
});

let repositories = 0;
/** A repository of its own, so that settings of one test do not meet another. */
function repositoryWith(config: string | null, files: Record<string, string> = {}): { repository: RepositoryHandle } {
  const all: Record<string, string> = { 'train.py': 'import torch\n', ...files };
  if (config !== null) all['.github/npu-advisor.yml'] = config;
  return { repository: world.hub.addRepository({ owner: 'acme', name: `repo-${repositories++}`, files: all }) };
}

const opened = (pr: PullHandle) => world.hub.deliver('pull_request', { action: 'opened', pr });
const completed = (run: ReturnType<typeof addRun>, options = {}) =>
  world.hub.deliver('workflow_run', { action: 'completed', run }, options);
const sticky = (pull: PullHandle) => world.hub.view(pull).comments.filter((comment) => comment.body.startsWith(COMMENT_MARKER));
const concluded = (pull: PullHandle) => until(world, pull, isConcluded, 'a concluded check');

function childrenOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((task) => {
    const ids = readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8');
    return ids.split(' ').filter((id) => id !== '');
  });
}

/** One pull request, one run, one conclusion. */
async function analyse(upload: Parameters<typeof addRun>[2], at: Pick<World, 'repository'> = world, name?: string) {
  const pull = openPull(at);
  await completed(addRun(at, pull, upload, name));
  const view = await concluded(pull);
  await untilQuiet(world, 400);
  return { pull, view: world.hub.view(pull), check: view.checks[0]! };
}

describe('a profile that arrives', () => {
  it('has the same figures on the page that its comment links to, and nobody finds the link in the log', async () => {
    const { pull, check } = await analyse(ONE_FINDING);
    const [comment] = sticky(pull);
    const [link, ...more] = linksIn(comment!.body);
    expect(more).toEqual([]);
    expect(check.detailsUrl).toBe(link);
    const here = link!.replace(PUBLIC_URL, server.url);
    const response = await fetch(here);
    const page = await response.text();
    expect(response.status).toBe(200);
    const rows = comment!.body.split('\n').filter((line) => /^\| \d/.test(line));
    const figures = rows.join('\n').match(/\d+[ \u00a0]ms/g)!;
    expect(figures.length).toBeGreaterThan(0);
    for (const figure of figures) expect(page).toContain(figure);
    expect(page).toContain(`/blob/${pull.headSha}/train.py#L2`);
    for (const forged of [`${here}x`, here.replace(/\/\d{10}\//, '/1999999999/')]) expect((await fetch(forged)).status).toBe(404);
    expect(server.log()).not.toContain(link!.split('/').at(-1));
  });

  it('is answered with one comment, one check and one review, and no token leaves the API host', async () => {
    const pull = openPull(world);
    expect((await opened(pull)).status).toBe(200);
    const queued = await until(world, pull, (view) => view.checks.length === 1, 'queued');
    expect(queued.checks[0]).toMatchObject({ name: 'NPU Advisor', status: 'queued', headSha: pull.headSha });
    await completed(addRun(world, pull, ONE_FINDING));
    await until(world, pull, (view) => view.reviews.length === 1, 'suggestions');
    await untilQuiet(world);
    const view = world.hub.view(pull);
    expect(view.comments).toHaveLength(1);
    expect(view.comments[0]?.body).toContain('1 cause costs about 94');
    expect(view.checks).toHaveLength(1);
    expect(view.checks[0]).toMatchObject({ status: 'completed', conclusion: 'neutral' });
    expect(view.checks[0]?.actions.map((action) => action.identifier)).toEqual(['rerun', 'ack-all']);
    // Short work shows no progress.
    const shown = view.checks[0]!.history.map(({ title }) => title?.split(' ', 1)[0]);
    expect([...new Set(shown)]).toEqual(['Waiting', 'Analysing', '1']);
    expect(view.reviews[0]?.comments[0]?.body).toContain('```suggestion\nloader = DataLoader(data, num_workers=8)\n```');
    const blobs = world.hub.journal.filter((exchange) => exchange.host === 'blob');
    expect(blobs.length).toBeGreaterThan(0);
    expect(blobs.every((exchange) => !exchange.authorization)).toBe(true);
    expect(readdirSync(join(world.dataDir, 'scratch'))).toEqual([]);
    expect(server.log()).not.toMatch(/ghs_|BEGIN RSA|sig=(?!\[)/);
  });

  it('twice by the same delivery is one answer', async () => {
    const pull = openPull(world);
    const run = addRun(world, pull, ONE_FINDING);
    const result = await completed(run, { times: 3, guid: 'same-delivery' });
    expect(result.attempts.map(({ status }) => status)).toEqual([200, 200, 200]);
    await until(world, pull, (view) => view.reviews.length === 1, 'published');
    await completed(run, { guid: 'same-delivery' });
    await untilQuiet(world);
    expect(sticky(pull)).toHaveLength(1);
    expect(world.hub.view(pull).checks).toHaveLength(1);
    expect(world.hub.view(pull).reviews).toHaveLength(1);
  });

  it('from two runs at once is one comment and one check', async () => {
    const pull = openPull(world);
    const runs = [addRun(world, pull, ONE_FINDING), addRun(world, pull, ONE_FINDING)];
    await Promise.all([opened(pull), ...runs.map((run) => completed(run))]);
    await until(world, pull, (view) => view.reviews.length === 1, 'published');
    await untilQuiet(world);
    expect(sticky(pull)).toHaveLength(1);
    expect(world.hub.view(pull).checks).toHaveLength(1);
    expect(world.hub.view(pull).reviews).toHaveLength(1);
  });

  it('of several artifacts is one job', async () => {
    const pull = openPull(world);
    const run = addRun(world, pull, ONE_FINDING, 'npu-profile-rank0');
    world.repository.addArtifact(run, { name: 'npu-profile-rank1', zipBuffer: makeZip({ 'x/other.csv': 'a' }) });
    world.repository.addArtifact(run, { name: 'logs', zipBuffer: Buffer.from('never read') });
    await completed(run);
    await until(world, pull, (view) => view.comments.length === 1, 'published');
    const downloads = world.hub.journal.filter((exchange) => exchange.operation === 'actions/download-artifact');
    expect(downloads.slice(-2).every(({ status }) => status === 302)).toBe(true);
  });

  it('from a fork is analysed and labelled', async () => {
    const pull = openPull(world, { fork: 'mallory', author: 'mallory' });
    await opened(pull);
    await completed(addRun(world, pull, ONE_FINDING));
    const view = await until(world, pull, (v) => v.comments.length === 1 && isConcluded(v), 'published');
    expect(view.comments[0]?.body).toMatch(/fork/i);
    expect(view.checks).toHaveLength(1);
  });

  it('without findings leaves the conversation alone, and turns an existing comment green', async () => {
    const quiet = await analyse({ findings: [] });
    expect(quiet.view.comments).toEqual([]);
    expect(quiet.check.conclusion).toBe('neutral');

    const { pull } = await analyse(ONE_FINDING);
    expect(sticky(pull)).toHaveLength(1);
    const next = world.repository.pushTo(pull, { 'train.py': `${TRAIN_PY}# better\n` });
    await world.hub.deliver('pull_request', { action: 'synchronize', pr: pull });
    const waiting = await until(world, pull, (view) => view.comments[0]?.body.includes(next.slice(0, 7)) === true, 'the footer');
    expect(waiting.comments[0]?.body).toContain('1 cause costs about 94');
    await completed(addRun(world, pull, { findings: [] }));
    await until(world, pull, (view) => view.checks.length === 2 && view.checks.every((c) => c.status === 'completed'), 'second check');
    await untilQuiet(world, 400);
    const [comment, ...more] = sticky(pull);
    expect(more).toEqual([]);
    expect(comment?.body).toContain('✅');
    expect(comment?.body).toContain('Data loader starves');
  });

  it('is suggested once, at most three times a review, and only inside the diff', async () => {
    const findings = [1, 2, 3, 4, 5].map((line) => ({ id: `cause-${line}`, edit: { file: 'train.py', line, after: `changed ${line}` } }));
    const outside = { id: 'cause-far', edit: { file: 'train.py', line: 400, after: 'x' } };
    const { pull } = await analyse({ findings: [outside, ...findings.slice(0, 4)] });
    const first = await until(world, pull, (view) => view.reviews.length === 1, 'review');
    expect(first.reviews[0]?.comments).toHaveLength(3);
    world.repository.pushTo(pull, { 'train.py': `${TRAIN_PY}# more\n` });
    await completed(addRun(world, pull, { findings: findings.slice(0, 4) }));
    const second = await until(world, pull, (view) => view.reviews.length === 2, 'second review');
    expect(second.reviews[1]?.comments).toHaveLength(1);
    const all = second.reviews.flatMap((review) => review.comments.map((c) => /id=(\S+)/.exec(c.body)?.[1]));
    expect(new Set(all).size).toBe(4);
  });
});

describe('a delivery that is refused', () => {
  it.each([
    ['a wrong signature', { secret: 'another-secret-that-is-long-enough-to-be-one' }, 401],
    ['no JSON', { headers: { 'content-type': 'application/x-www-form-urlencoded' } }, 415],
    ['more than 25 MB', { rawBody: Buffer.alloc(26 * 1024 * 1024, 32) }, 413],
  ])('for %s changes nothing', async (_, options, status) => {
    const pull = openPull(world);
    const result = await completed(addRun(world, pull, ONE_FINDING), options).catch(() => null);
    // The connection is closed while a too large body is still being sent; then there is no answer to read.
    if (result !== null && result.status !== 0) expect(result.status).toBe(status);
    await untilQuiet(world, 300);
    expect(world.hub.view(pull).checks).toEqual([]);
  });

  it('has health and readiness beside it', async () => {
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    expect((await fetch(`${server.url}/probot`)).status).toBe(404);
    expect((await fetch(server.webhookUrl)).status).toBe(405);
  });
});

describe('a profile that cannot be used', () => {
  it('because its artifact has expired', async () => {
    const pull = openPull(world);
    const run = world.repository.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'success' });
    const artifact = world.repository.addArtifact(run, { name: 'npu-profile', zipBuffer: makeZip({ a: 'b' }) });
    world.repository.expireArtifact(artifact);
    await completed(run);
    const view = await concluded(pull);
    expect(view.checks[0]?.conclusion).toBe('neutral');
    expect(view.checks[0]?.title).toMatch(/expired|deleted/i);
  });

  it('because the artifact went (410) between listing and download', async () => {
    world.hub.fault({ match: /GET \/repos\/acme\/train\/actions\/artifacts\/\d+\/zip/, status: 410, message: 'Artifact has expired' });
    const { check } = await analyse(ONE_FINDING);
    expect(check.title).toMatch(/expired|deleted/i);
  });

  it.each<[string, Record<string, string | Buffer> | { content: Buffer }]>([
    ['its zip is corrupt', { content: Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), Buffer.alloc(500, 7)]) }],
    ['its zip is cut', { content: makeZip({ 'prof/plan.json': JSON.stringify(ONE_FINDING) }).subarray(0, 60) }],
    ['it is no archive', { content: Buffer.from('<html>not found</html>') }],
    ['a name leads out of the archive', { '../../evil.json': '{}', 'plan.json': JSON.stringify(ONE_FINDING) }],
    ['a name is absolute', { '/etc/evil': 'x', 'plan.json': JSON.stringify(ONE_FINDING) }],
    ['there is no profile inside', { 'readme.txt': 'hello' }],
  ])('because %s', async (_, upload) => {
    const { check, view } = await analyse(
      'content' in upload && Buffer.isBuffer(upload.content) ? { content: upload.content } : { files: upload as Record<string, string> },
    );
    expect(check).toMatchObject({ status: 'completed', conclusion: 'neutral' });
    expect(check.summary).toContain('npu-profile');
    expect(check.summary).not.toContain('scratch');
    expect(view.comments).toEqual([]);
  });

  it('because it is too large, seen before and during the download', async () => {
    for (const declaredSize of [50_000_000, 1000]) {
      const pull = openPull(world);
      const run = world.repository.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'success' });
      world.repository.addArtifact(run, { name: 'npu-profile', zipBuffer: Buffer.alloc(3_000_000, 1), declaredSize, omitLength: true });
      await completed(run);
      expect((await concluded(pull)).checks[0]?.summary).toMatch(/reads up to/);
    }
  });

  it('because it does not match its digest', async () => {
    const pull = openPull(world);
    const run = world.repository.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'success' });
    world.repository.addArtifact(run, { name: 'npu-profile', zipBuffer: makeZip({ 'plan.json': '{}' }), digest: 'wrong' });
    await completed(run);
    expect((await concluded(pull)).checks[0]?.summary).toMatch(/digest/);
  });

  it('because no artifact has a matching name; what was uploaded is named', async () => {
    const { check, view } = await analyse(ONE_FINDING, world, 'wheels');
    expect(check.conclusion).toBe('neutral');
    expect(check.summary).toContain('wheels');
    expect(view.comments).toEqual([]);
  });

  it.each<[string, Plan, RegExp]>([
    ['the analysis takes too long', { delayMs: 60_000 }, /longer than 15 s/],
    ['the analysis needs too much memory', { allocateMb: 2000 }, /memory/],
    ['the analysis process dies', { crash: true }, /did not finish/],
  ])(
    'because %s',
    async (_, plan, words) => {
      const { check } = await analyse(plan);
      expect(check).toMatchObject({ status: 'completed', conclusion: 'neutral' });
      expect(check.summary).toMatch(words);
      // Its process is gone with all it left, and the next profile is analysed as ever.
      await expect.poll(() => childrenOf(server.child.pid!), { timeout: 5000 }).toEqual([]);
      expect(readdirSync(join(world.dataDir, 'scratch'))).toEqual([]);
      expect((await analyse(ONE_FINDING)).check.title).toMatch(/^1 cause/);
    },
    90_000,
  );
});

describe('GitHub having a bad day', () => {
  it('cuts a download: it is fetched again from a fresh address', async () => {
    const blob = world.hub.fault({ match: /^BLOB GET/, dropConnection: true });
    const { pull } = await analyse(ONE_FINDING);
    expect(blob.hits).toBe(1);
    await until(world, pull, (view) => view.comments.length === 1, 'published');
  });

  it.each([
    ['a comment', /^POST \S*\/issues\/\d+\/comments/],
    ['a check run', /^POST \S*\/check-runs$/],
    ['a review', /^POST \S*\/pulls\/\d+\/reviews/],
  ])('loses the answer to the creation of %s: it is not created twice', async (_, match) => {
    const fault = world.hub.fault({ match, phase: 'after', dropConnection: true });
    const pull = openPull(world);
    await completed(addRun(world, pull, ONE_FINDING));
    // The link to the suggestion is written last, by the try after the one whose answer was lost.
    const isLinked = ({ comments }: PullView): boolean => comments.some(({ body }) => body.includes('#discussion_r'));
    await until(world, pull, (view) => view.reviews.length > 0 && isLinked(view) && isConcluded(view), 'published', 50_000);
    await untilQuiet(world, 2500);
    expect(fault.hits).toBe(1);
    const view = world.hub.view(pull);
    expect([view.comments.length, view.checks.length, view.reviews.length]).toEqual([1, 1, 1]);
    expect(view.comments[0]?.body).toContain('#discussion_r');
  });

  it('shows old comment lists: duplicates heal, the oldest stays', async () => {
    const { pull } = await analyse(ONE_FINDING);
    const first = sticky(pull)[0]!.id;
    world.repository.pushTo(pull, { 'train.py': `${TRAIN_PY}#\n` });
    await completed(addRun(world, pull, { findings: [] }));
    await until(world, pull, (view) => view.checks.length === 2 && view.checks.every((c) => c.status === 'completed'), 'second');
    expect(sticky(pull).map(({ id }) => id)).toEqual([first]);
  });
});

describe('a pull request that moves', () => {
  it('forced to another commit during the analysis gets no comment about the old one, only its check', async () => {
    const pull = openPull(world);
    const old = pull.headSha;
    await completed(addRun(world, pull, { ...ONE_FINDING, delayMs: 2500 }));
    await until(world, pull, (view) => view.checks.some((check) => check.status === 'in_progress'), 'analysing');
    const next = world.repository.forcePush(pull, { 'train.py': `${TRAIN_PY}# forced\n` });
    await world.hub.deliver('pull_request', { action: 'synchronize', pr: pull });
    await until(world, pull, (view) => view.checks.some((c) => c.headSha === old && c.status === 'completed'), 'old check');
    await untilQuiet(world, 500);
    const view = world.hub.view(pull);
    expect(view.comments).toEqual([]);
    expect(view.reviews).toEqual([]);
    expect(view.checks.find((c) => c.headSha === next)).toMatchObject({ status: 'queued' });

    await completed(addRun(world, pull, ONE_FINDING));
    await until(world, pull, (v) => v.comments.length === 1 && v.checks.every((c) => c.status === 'completed'), 'new answer');
    expect(sticky(pull)[0]?.body).toContain(next.slice(0, 7));
  });

  it('forced before the run ended: the old check says so', async () => {
    const pull = openPull(world);
    await opened(pull);
    await until(world, pull, (view) => view.checks.length === 1, 'queued');
    // The look that comes with the opening must not find the run yet.
    await untilQuiet(world, 500);
    const run = addRun(world, pull, ONE_FINDING);
    world.repository.forcePush(pull, { 'train.py': '# other\n' });
    await completed(run);
    const view = await concluded(pull);
    expect(view.checks[0]?.title).toMatch(/Superseded/);
    expect(view.comments).toEqual([]);
  });

  it('closed: its waiting check is concluded', async () => {
    const pull = openPull(world);
    await opened(pull);
    await until(world, pull, (view) => view.checks.length === 1, 'queued');
    world.repository.closePullRequest(pull);
    await world.hub.deliver('pull_request', { action: 'closed', pr: pull });
    expect((await concluded(pull)).checks[0]).toMatchObject({ conclusion: 'neutral', title: 'Pull request closed' });
  });

  it('waits for another run that is still going', async () => {
    const pull = openPull(world);
    const running = world.repository.addWorkflowRun({ pr: pull, status: 'in_progress', path: '.github/workflows/gpu.yml' });
    await completed(addRun(world, pull, null));
    await untilQuiet(world, 800);
    expect(isConcluded(world.hub.view(pull))).toBe(false);
    world.repository.updateWorkflowRun(running, { status: 'completed', conclusion: 'success' });
    await completed(running);
    expect((await concluded(pull)).checks).toHaveLength(1);
  });

  it('with a second workflow that has no profile keeps its report', async () => {
    const { pull } = await analyse(ONE_FINDING);
    const before = sticky(pull)[0]?.body;
    await completed(addRun(world, pull, null));
    await untilQuiet(world, 800);
    expect(sticky(pull)[0]?.body).toBe(before);
    expect(world.hub.view(pull).checks[0]?.title).toMatch(/1 cause/);
  });
});

describe('settings', () => {
  it('come from the base branch and never from the change itself', async () => {
    const at = repositoryWith('lang: zh\ngate: { severity: high }\n');
    const pull = at.repository.openPullRequest({
      author: 'alice',
      branch: 'loosen',
      title: 'loosen',
      changes: { 'train.py': TRAIN_PY, '.github/npu-advisor.yml': 'gate: null\n' },
    });
    await completed(addRun(at, pull, ONE_FINDING));
    const view = await until(world, pull, (v) => isConcluded(v) && v.comments.length === 1, 'published');
    expect(view.checks[0]?.conclusion).toBe('failure');
    expect(view.comments[0]?.body).toContain('门禁');
  });

  it('that a pull request changes are judged line by line in a check of their own, and not applied', async () => {
    const at = repositoryWith('lang: zh\n');
    const propose = (text: string, branch: string) =>
      at.repository.openPullRequest({
        author: 'alice',
        branch,
        title: branch,
        changes: { 'train.py': TRAIN_PY, '.github/npu-advisor.yml': text },
      });
    const settingsOf = (pull: PullHandle) => world.hub.view(pull).checks.filter(({ name }) => name === 'NPU Advisor settings');

    const wrong = propose('lang: en\ngate: { severity: fatal }\ncoment: always\ndisabled_rules: [no-such-rule]\n', 'wrong');
    await opened(wrong);
    await until(world, wrong, () => settingsOf(wrong)[0]?.status === 'completed', 'judged');
    const [check, ...more] = settingsOf(wrong);
    expect(more).toEqual([]);
    expect(check).toMatchObject({ conclusion: 'failure', title: '配置无效', externalId: expect.stringMatching(/\/settings$/) });
    expect(check!.summary).toContain('按基线分支的配置处理');
    expect(check!.annotations.map(({ path, startLine, level }) => [path, startLine, level])).toEqual([
      ['.github/npu-advisor.yml', 2, 'failure'],
      ['.github/npu-advisor.yml', 3, 'failure'],
    ]);
    expect(check!.annotations[1]?.message).toContain('comment');
    // The own check goes on as the base branch says.
    await completed(addRun(at, wrong, ONE_FINDING));
    const own = (v: PullView) => v.checks.find(({ name }) => name === 'NPU Advisor');
    const view = await until(world, wrong, (v) => v.comments.length === 1 && own(v)?.status === 'completed', 'published');
    expect(own(view)?.conclusion).toBe('neutral');
    expect(view.comments[0]?.body).toContain('原因');

    world.repository.setPermission('alice', 'write');
    at.repository.pushTo(wrong, { '.github/npu-advisor.yml': 'lang: en\ngate: { severity: high }\n' });
    await world.hub.deliver('pull_request', { action: 'synchronize', pr: wrong });
    await until(world, wrong, () => settingsOf(wrong).length === 2 && settingsOf(wrong)[1]?.status === 'completed', 'judged again');
    expect(settingsOf(wrong)[1]).toMatchObject({ conclusion: 'success', title: '配置有效', annotations: [] });

    const other = openPull(at);
    await opened(other);
    await until(world, other, (v) => v.checks.length === 1, 'queued');
    await untilQuiet(world, 800);
    expect(settingsOf(other)).toEqual([]);
  });

  it('of a fork are judged, too', async () => {
    const at = repositoryWith('lang: en\n');
    const fork = at.repository.openPullRequest({
      author: 'mallory',
      branch: 'evil',
      title: 'evil',
      changes: { '.github/npu-advisor.yml': 'gate: |[\n  @everyone <img src=x>\n' },
      fork: { owner: 'mallory' },
    });
    await opened(fork);
    await until(
      world,
      fork,
      (v) => v.checks.some(({ name, status }) => name === 'NPU Advisor settings' && status === 'completed'),
      'judged',
    );
    const check = world.hub.view(fork).checks.find(({ name }) => name === 'NPU Advisor settings');
    expect(check).toMatchObject({ conclusion: 'failure' });
    expect(check?.summary).not.toMatch(/<img|(^|\s)@everyone/);
  });

  it('with a mistake block with the line and the nearest key', async () => {
    const { check } = await analyse(ONE_FINDING, repositoryWith('lang: en\ncoment: always\n'));
    expect(check.conclusion).toBe('action_required');
    expect(check.summary).toContain('comment');
  });

  it.each([
    ['comment: off', 'comment: off\n', ONE_FINDING, 0, 1],
    ['comment: always', 'comment: always\n', { findings: [] }, 1, 0],
    ['suggestions: off', 'suggestions: off\n', ONE_FINDING, 1, 0],
    ['suggestions: on-request', 'suggestions: on-request\n', ONE_FINDING, 1, 0],
  ] as const)('%s', async (_, config, plan, comments, reviews) => {
    const { pull } = await analyse(plan as Plan, repositoryWith(config));
    await untilQuiet(world, 600);
    expect([sticky(pull).length, world.hub.view(pull).reviews.length]).toEqual([comments, reviews]);
  });

  it('on_missing decides the conclusion when nothing arrives', async () => {
    const { check } = await analyse(null, repositoryWith('on_missing: failure\n'));
    expect(check.conclusion).toBe('failure');
  });

  it('workflows limits which runs are trusted', async () => {
    const at = repositoryWith('workflows: [.github/workflows/trusted.yml]\n');
    const pull = openPull(at);
    await opened(pull);
    await until(world, pull, (view) => view.checks.length === 1, 'queued');
    await completed(addRun(at, pull, ONE_FINDING));
    await untilQuiet(world, 600);
    expect(world.hub.view(pull).comments).toEqual([]);
    expect(isConcluded(world.hub.view(pull))).toBe(false);
  });
});

describe('commands', () => {
  const say = async (pull: PullHandle, user: string, body: string, options: { type?: 'User' | 'Bot' } = {}) => {
    const comment = world.repository.comment(pull, user, body, options);
    await world.hub.deliver('issue_comment', { action: 'created', comment });
    return comment;
  };
  const reactions = (pull: PullHandle, id: number) => world.hub.view(pull).comments.find((comment) => comment.id === id)?.reactions ?? [];

  it('run by the author makes the comment even when all is quiet', async () => {
    const { pull } = await analyse({ findings: [] });
    const comment = await say(pull, 'alice', '/npu-advise run');
    await until(world, pull, () => reactions(pull, comment.id).includes('+1'), 'reaction');
    expect(reactions(pull, comment.id)).toEqual(['eyes', '+1']);
    expect(sticky(pull)).toHaveLength(1);
    expect(world.hub.view(pull).checks).toHaveLength(1);
  });

  it('run by a stranger is refused, by a writer accepted', async () => {
    const { pull } = await analyse(ONE_FINDING);
    const refused = await say(pull, 'stranger', '/npu-advise rerun');
    await until(world, pull, () => reactions(pull, refused.id).includes('confused'), 'refused');
    world.repository.setPermission('maintainer', 'write');
    const accepted = await say(pull, 'maintainer', '/npu-advise rerun');
    await until(world, pull, () => reactions(pull, accepted.id).includes('+1'), 'accepted');
    expect(sticky(pull)).toHaveLength(1);
  });

  it('run with the number of a run, or the name of an artifact, analyses that one and no other', async () => {
    const pull = openPull(world);
    const older = addRun(world, pull, { findings: [{ id: 'the-older' }] });
    await completed(addRun(world, pull, { findings: [] }));
    await concluded(pull);
    const odd = makeZip({ 'prof/plan.json': JSON.stringify({ findings: [{ id: 'the-odd-name' }] }) });
    world.repository.addArtifact(older, { name: 'my traces', zipBuffer: odd });

    const byNumber = await say(pull, 'alice', `/npu-advise run ${older.id}`);
    await until(world, pull, () => reactions(pull, byNumber.id).includes('+1'), 'by number');
    expect(sticky(pull)[0]?.body).toContain('the-older');
    const byName = await say(pull, 'alice', '/npu-advise run my traces');
    await until(world, pull, () => reactions(pull, byName.id).includes('+1'), 'by name');
    expect(sticky(pull)[0]?.body).toContain('the-odd-name');
    // Without more words it is again whatever the commit has.
    const plain = await say(pull, 'alice', '/npu-advise run');
    await until(world, pull, () => reactions(pull, plain.id).includes('+1'), 'plain');
    expect(sticky(pull)[0]?.body).not.toContain('(the-odd-name)');
    expect(sticky(pull)).toHaveLength(1);
    expect(world.hub.view(pull).checks).toHaveLength(1);
  });

  it('run with what cannot be analysed here says why', async () => {
    const other = openPull(world);
    const theirs = addRun(world, other, ONE_FINDING);
    const { pull } = await analyse({ findings: [] });
    const running = world.repository.addWorkflowRun({ pr: pull, status: 'in_progress' });
    const before = world.hub.journal.length;
    const lines = [
      `/npu-advise run ${theirs.id}`,
      `/npu-advise run ${running.id}`,
      '/npu-advise run 123',
      '/npu-advise run no-such-artifact',
      `/npu-advise run https://github.com/evil/train/actions/runs/${theirs.id}`,
    ];
    const comment = await say(pull, 'alice', lines.join('\n'));
    await until(world, pull, () => reactions(pull, comment.id).includes('confused'), 'refused');
    const replies = world.hub.view(pull).comments.filter((c) => c.body.includes('npu-advisor:reply'));
    expect(replies.map((c) => c.body.split('\n').slice(1).join('\n'))).toEqual([
      expect.stringMatching(/belongs to commit `[0-9a-f]{7}`, the head of this pull request is `[0-9a-f]{7}`: nothing was started\./),
      expect.stringMatching(/has not ended/),
      expect.stringMatching(/no workflow run `123`/),
      expect.stringMatching(/has the artifact `no-such-artifact` \(uploaded: `npu-profile`\)/),
      expect.stringMatching(/That run is of `evil\/train`, this is `acme\/train`/),
    ]);
    expect(world.hub.journal.slice(before).filter(({ operation }) => operation === 'actions/download-artifact')).toEqual([]);
    const stranger = await say(pull, 'stranger', `/npu-advise run ${theirs.id}`);
    await until(world, pull, () => reactions(pull, stranger.id).includes('confused'), 'not allowed');
  });

  it('from bots, edits and ordinary issues are not heard', async () => {
    const { pull } = await analyse({ findings: [] });
    const bot = await say(pull, 'helper[bot]', '/npu-advise run', { type: 'Bot' });
    const edited = world.repository.comment(pull, 'alice', '/npu-advise run');
    await world.hub.deliver('issue_comment', { action: 'edited', comment: edited, previousBody: 'x' });
    await untilQuiet(world, 600);
    expect(reactions(pull, bot.id)).toEqual([]);
    expect(reactions(pull, edited.id)).toEqual([]);
  });

  it('help and status answer anyone; an unknown one brings help with the nearest name', async () => {
    const { pull } = await analyse(ONE_FINDING);
    const comment = await say(pull, 'stranger', '/npu-advise help\n/npu-advise status\n/npu-advise statu');
    await until(world, pull, () => reactions(pull, comment.id).includes('confused'), 'answered');
    const replies = world.hub
      .view(pull)
      .comments.filter((c) => c.body.includes('npu-advisor:reply'))
      .map((c) => c.body);
    expect(replies).toHaveLength(3);
    expect(replies.join('\n')).toContain('1 of 1 artifacts match');
    expect(replies.join('\n')).toContain('`status`');
  });

  it('of one person are heard so often within an hour; the first beyond is told', async () => {
    const { pull } = await analyse({ findings: [] });
    const comments = [];
    for (let i = 0; i < 22; i++) comments.push(await say(pull, 'chatty', '/npu-advise help'));
    const last = comments.at(-1)!;
    await until(world, pull, () => reactions(pull, last.id).length > 0, 'the last is answered');
    await untilQuiet(world, 1000);
    const answered = comments.map(({ id }) => reactions(pull, id).at(-1));
    expect(answered.filter((reaction) => reaction === '+1')).toHaveLength(20);
    expect(answered.filter((reaction) => reaction === 'confused')).toHaveLength(2);
    const told = world.hub
      .view(pull)
      .comments.filter((c) => /more than 20 requests of one person within an hour\. .* from \d\d:\d\d UTC/.test(c.body));
    expect(told).toHaveLength(1);
    // Somebody else is heard.
    const other = await say(pull, 'calm', '/npu-advise help');
    await until(world, pull, () => reactions(pull, other.id).includes('+1'), 'somebody else');
  });

  it('twice by the same delivery is one answer', async () => {
    const { pull } = await analyse({ findings: [] });
    const comment = world.repository.comment(pull, 'alice', '/npu-advise help');
    await world.hub.deliver('issue_comment', { action: 'created', comment }, { times: 2 });
    await untilQuiet(world, 800);
    expect(world.hub.view(pull).comments.filter((c) => c.body.includes('npu-advisor:reply'))).toHaveLength(1);
  });
});

describe('asking again on the check', () => {
  it('by rerequest or button runs once more on the same check', async () => {
    const { pull } = await analyse(ONE_FINDING);
    const downloads = () => world.hub.journal.filter((exchange) => exchange.operation === 'actions/download-artifact').length;
    const before = downloads();
    await world.hub.deliver('check_run', { action: 'rerequested', check: { pr: pull, name: 'NPU Advisor' } });
    await expect.poll(downloads, { timeout: 15_000 }).toBe(before + 1);
    await until(world, pull, isConcluded, 'concluded');
    await untilQuiet(world, 600);
    await world.hub.deliver(
      'check_run',
      { action: 'requested_action', check: { pr: pull, name: 'NPU Advisor' }, identifier: 'rerun' },
      { sender: 'stranger' },
    );
    await untilQuiet(world, 800);
    expect(downloads()).toBe(before + 1);
    await world.hub.deliver(
      'check_run',
      { action: 'requested_action', check: { pr: pull, name: 'NPU Advisor' }, identifier: 'rerun' },
      { sender: 'alice' },
    );
    await expect.poll(downloads, { timeout: 15_000 }).toBe(before + 2);
    await untilQuiet(world, 600);
    expect(world.hub.view(pull).checks).toHaveLength(1);
    expect(world.hub.view(pull).checks[0]?.annotations).toHaveLength(1);
  });

  const CHECK = (pr: PullHandle) => ({ pr, name: 'NPU Advisor' });
  const downloads = () => world.hub.journal.filter((exchange) => exchange.operation === 'actions/download-artifact').length;

  it('is for the author and those who may write, asked at that moment', async () => {
    const { pull } = await analyse(ONE_FINDING);
    const rerun = (sender: string) => world.hub.deliver('check_run', { action: 'rerequested', check: CHECK(pull) }, { sender });
    const before = downloads();
    const said = () => world.hub.view(pull).checks[0]!.history.length;
    const history = said();
    await rerun('stranger');
    world.repository.setPermission('reader', 'read');
    await rerun('reader');
    // Nothing is analysed; the check says again what it said, so that nobody waits for it.
    await expect.poll(said, { timeout: 10_000 }).toBe(history + 2);
    expect(downloads()).toBe(before);
    expect(world.hub.view(pull).checks[0]).toMatchObject({
      status: 'completed',
      conclusion: 'neutral',
      title: expect.stringMatching(/^1 cause/),
    });
    world.repository.setPermission('maintainer', 'write');
    await rerun('maintainer');
    await expect.poll(downloads, { timeout: 15_000 }).toBe(before + 1);
    await untilQuiet(world, 800);
    await world.hub.deliver(
      'check_suite',
      { action: 'rerequested', repository: world.repository, headSha: pull.headSha },
      { sender: 'alice' },
    );
    await expect.poll(downloads, { timeout: 15_000 }).toBe(before + 2);
    await untilQuiet(world, 800);
    expect(world.hub.view(pull).checks).toHaveLength(1);
  });

  it('for a commit that was pushed over says again what was said', async () => {
    const { pull } = await analyse(ONE_FINDING);
    const [old] = world.hub.view(pull).checks;
    world.repository.pushTo(pull, { 'train.py': `${TRAIN_PY}# next\n` });
    const before = downloads();
    await world.hub.deliver('check_run', { action: 'rerequested', check: old!.id }, { sender: 'alice' });
    await expect.poll(() => world.hub.view(pull).checks[0]!.history.length, { timeout: 10_000 }).toBe(old!.history.length + 1);
    expect(world.hub.view(pull).checks[0]).toMatchObject({
      status: 'completed',
      conclusion: 'neutral',
      title: old!.title,
      text: old!.text,
    });
    expect(downloads()).toBe(before);
  });

  it('for changes, where they are posted on request only, posts them without a second analysis', async () => {
    const at = repositoryWith('suggestions: on-request\n');
    const pull = openPull(at);
    await completed(addRun(at, pull, ONE_FINDING));
    const view = await concluded(pull);
    expect(view.checks[0]?.actions.map(({ identifier }) => identifier)).toEqual(['rerun', 'ack-all', 'suggest']);
    expect(view.reviews).toEqual([]);
    const before = downloads();
    const press = (sender: string) =>
      world.hub.deliver('check_run', { action: 'requested_action', check: CHECK(pull), identifier: 'suggest' }, { sender });
    await press('stranger');
    await untilQuiet(world, 800);
    expect(world.hub.view(pull).reviews).toEqual([]);
    await press('alice');
    const after = await until(world, pull, (v) => v.reviews.length === 1, 'suggestions');
    expect(after.reviews[0]?.comments[0]?.body).toContain('```suggestion');
    await untilQuiet(world, 800);
    expect(downloads()).toBe(before);
    expect(world.hub.view(pull).checks[0]?.actions.map(({ identifier }) => identifier)).toEqual(['rerun', 'ack-all']);
    await press('alice');
    await untilQuiet(world, 800);
    expect(world.hub.view(pull).reviews).toHaveLength(1);
  });

  it('by an action of another app, or one that does not exist, does nothing', async () => {
    const { pull } = await analyse({ findings: [] });
    const mark = world.hub.journal.length;
    await world.hub.deliver(
      'check_run',
      { action: 'requested_action', check: CHECK(pull), identifier: 'format-disk' },
      { sender: 'alice' },
    );
    await untilQuiet(world, 600);
    expect(world.hub.journal.slice(mark).filter(({ method }) => method !== 'GET')).toEqual([]);
  });

  it('the merge queue is not held up', async () => {
    const pull = openPull(world);
    const group = world.repository.addMergeGroup(pull);
    const seen = world.hub.journal.length;
    await world.hub.deliver('merge_group', { action: 'checks_requested', group });
    await expect
      .poll(() => world.hub.journal.slice(seen).filter((e) => e.operation === 'checks/update' && e.status === 200).length, {
        timeout: 10_000,
      })
      .toBe(1);
    // Nor when somebody asks for it again.
    const check = world.hub.journal
      .slice(seen)
      .find(({ operation }) => operation === 'checks/update')!
      .path.split('/')
      .at(-1);
    await world.hub.deliver('check_run', { action: 'rerequested', check: Number(check) }, { sender: 'alice' });
    await expect
      .poll(() => world.hub.journal.slice(seen).filter((e) => e.operation === 'checks/update' && e.status === 200).length, {
        timeout: 10_000,
      })
      .toBe(2);
  });
});

describe('strangers', () => {
  it('who plant our marker in a comment do not get it edited', async () => {
    const pull = openPull(world);
    const planted = world.repository.comment(pull, 'mallory', `${COMMENT_MARKER}app=npu-advisor pr=${pull.number} -->\nAll good, merge!`);
    await completed(addRun(world, pull, ONE_FINDING));
    const view = await until(world, pull, (v) => v.comments.length === 2, 'published');
    expect(view.comments.find(({ id }) => id === planted.id)?.body).toContain('All good, merge!');
    expect(view.comments.filter(({ author }) => author === 'npu-advisor[bot]')).toHaveLength(1);
  });
});

describe('an App that is removed', () => {
  it.each(['installation', 'installation_repositories'] as const)('by %s: erases what it held', async (event) => {
    const repository = world.hub.addRepository({ owner: `leaving-${event}`, name: 'train', files: { 'train.py': 'import torch\n' } });
    await analyse(ONE_FINDING, { repository });
    const { owner } = repository;
    if (event === 'installation') await world.hub.deliver(event, { action: 'deleted', owner });
    else {
      repository.uninstall();
      await world.hub.deliver(event, { action: 'removed', owner, repositories: [repository] });
    }
    const erased = new RegExp(`"repoId":${event === 'installation' ? 'null' : repository.id},"rows":(\\d+)`);
    await expect.poll(() => Number(erased.exec(server.log())?.[1] ?? 0), { timeout: 20_000 }).toBeGreaterThan(4);
  });
});

/** Last, since it looks at everything that was done before. */
describe('the App', () => {
  it('connects to GitHub and its storage, and to nothing else', () => {
    const seen = (what: string) => new Set([...server.log().matchAll(new RegExp(`^${what} (\\S+)$`, 'gm'))].map((match) => match[1]));
    expect(seen('CONNECT')).toEqual(new Set([new URL(world.hub.apiUrl).host, new URL(world.hub.blobUrl).host]));
    // The address it listens on itself is looked up, too.
    expect([...seen('LOOKUP')].filter((name) => name !== '127.0.0.1')).toEqual([]);
  });

  it('asks for what the calls and events need, and for nothing else', () => {
    const { default_permissions: asked, default_events: events } = parse(
      readFileSync(join(import.meta.dirname, '../../app.yml'), 'utf8'),
    ) as { default_permissions: Record<string, 'read' | 'write'>; default_events: string[] };
    const operations = new Set(world.hub.journal.flatMap(({ operation }) => (operation === null ? [] : [operation])));
    // A flow that calls little would prove little.
    expect(operations.size).toBeGreaterThan(20);
    const grants = (entry: string): boolean => {
      const [name = '', level] = entry.split(':');
      return asked[name] === 'write' || asked[name] === level;
    };
    const needs = new Map<string, Set<string>>();
    const need = (entries: readonly string[], by: string): void => {
      const granted = entries.filter(grants);
      expect(granted, `${by} needs ${entries.join(' or ')}`).not.toEqual([]);
      for (const entry of granted) needs.set(entry, (needs.get(entry) ?? new Set()).add(by));
    };
    for (const operation of operations) {
      const entries = requiredPermissions[operation];
      if (Array.isArray(entries)) need(entries as readonly string[], operation);
    }
    for (const event of events) {
      const entry = eventPermissions[event];
      if (entry !== null) need([entry ?? `no permission is known for ${event}`], event);
    }
    // Each permission is needed by something, and as far as it is asked for. Metadata is what GitHub gives every App.
    for (const [name, level] of Object.entries(asked)) {
      if (name !== 'metadata') expect([...(needs.get(`${name}:${level}`) ?? [])], `${name}: ${level} is not needed`).not.toEqual([]);
    }
  });
});
