/* Commands and buttons about findings, from the delivery to what stands on the pull request. One store and one GitHub for all of them. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PullHandle, RepositoryHandle } from '../../lab/loopback-github/index.ts';
import { COMMENT_MARKER } from '../../src/github/publish/comment.ts';
import { FACTS_SCHEMA } from '../../src/model/facts-schema.ts';
import { comparison } from '../render/reports.ts';
import type { Plan } from './support/fake-analyser.ts';
import { type Jobs, openJobs } from './support/jobs.ts';
import { openPull, TRAIN_PY } from './support/world.ts';
import { makeZip } from './support/zip.ts';

let jobs: Jobs;
beforeAll(async () => {
  jobs = await openJobs();
});
afterAll(() => jobs.close());
afterEach(() => {
  expect(jobs.hub.violations).toEqual([]);
});

let repositories = 0;
function repositoryWith(config: string): RepositoryHandle {
  const files = { 'train.py': 'import torch\n', '.github/npu-advisor.yml': config };
  const repository = jobs.hub.addRepository({ owner: 'acme', name: `ack-${repositories++}`, files });
  repository.setPermission('maintainer', 'write');
  repository.setPermission('reader', 'read');
  return repository;
}

const BOTH: Plan = {
  findings: [
    { id: 'loader-1', likely: 94, edit: { file: 'train.py', line: 2, after: 'loader = DataLoader(data, num_workers=8)' } },
    { id: 'slow-2', likely: 40 },
  ],
};
/** Figures are tied to their units by a space that is none in here. */
const plain = (text: string | null): string => (text ?? '').replaceAll('\u00a0', ' ');
const sticky = (pull: PullHandle): string =>
  plain(jobs.hub.view(pull).comments.find(({ body }) => body.startsWith(COMMENT_MARKER))?.body ?? '');
const check = (pull: PullHandle) => {
  const found = jobs.hub.view(pull).checks.find(({ name, headSha }) => name === 'NPU Advisor' && headSha === pull.headSha)!;
  return { ...found, title: plain(found.title), text: plain(found.text) };
};
const replies = (pull: PullHandle): string[] =>
  jobs.hub.view(pull).comments.flatMap(({ body }) => (body.startsWith('<!-- npu-advisor:reply') ? [body] : []));
async function upload(repository: RepositoryHandle, pull: PullHandle, plan: Plan): Promise<ReturnType<RepositoryHandle['addArtifact']>> {
  const run = repository.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'success' });
  const artifact = repository.addArtifact(run, { name: 'npu-profile', zipBuffer: makeZip({ 'prof/plan.json': JSON.stringify(plan) }) });
  await jobs.take('workflow_run', { action: 'completed', run });
  return artifact;
}
async function say(repository: RepositoryHandle, pull: PullHandle, user: string, body: string): Promise<string | undefined> {
  const comment = repository.comment(pull, user, body);
  await jobs.take('issue_comment', { action: 'created', comment });
  return jobs.hub
    .view(pull)
    .comments.find(({ id }) => id === comment.id)
    ?.reactions.at(-1);
}
const press = (pull: PullHandle, identifier: string, sender: string): Promise<void> =>
  jobs.take('check_run', { action: 'requested_action', check: { pr: pull, name: 'NPU Advisor' }, identifier }, { sender });
const downloads = (): number => jobs.hub.journal.filter(({ operation }) => operation === 'actions/download-artifact').length;

describe('a finding that is acknowledged', () => {
  let repository: RepositoryHandle;
  let pull: PullHandle;
  beforeAll(async () => {
    repository = repositoryWith('gate: { severity: high }\n');
    pull = openPull({ repository });
    await upload(repository, pull, BOTH);
  });
  // GitHub's clock has stayed where it was.
  afterAll(() => jobs.advance(-3 * 86_400_000));

  it('only by who may write; the author of the change cannot open the gate', async () => {
    expect(check(pull)).toMatchObject({ conclusion: 'failure', title: 'Gate failed: 2 causes, about 134 of 812 ms per step' });
    expect(check(pull).actions.map(({ identifier, label }) => `${identifier} ${label}`)).toEqual([
      'rerun Analyse again',
      'ack-all Acknowledge all',
    ]);
    for (const user of ['alice', 'reader', 'stranger']) expect(await say(repository, pull, user, '/npu-advise ack 1')).toBe('confused');
    expect(replies(pull)[0]).toContain('`ack` is for people who may write to this repository.');
    expect(check(pull).conclusion).toBe('failure');
  });

  it('is shown with who, until when and why, and fails no gate; nothing is analysed for it', async () => {
    const before = downloads();
    const told = replies(pull).length;
    const reason = '@octocat see <img src=x> [x](https://evil.example) | `code` \u202egnp until 2099-01-31';
    expect(await say(repository, pull, 'maintainer', `/npu-advise ack 1 ${reason}`)).toBe('confused');
    expect(replies(pull).at(-1)).toContain('holds for a year at most');
    const day = new Date(Date.now() + 40 * 86_400_000).toISOString().slice(0, 10);
    expect(await say(repository, pull, 'maintainer', `/npu-advise ack 1 ${reason.replace('2099-01-31', day)}`)).toBe('+1');
    expect(downloads()).toBe(before);
    expect(replies(pull)).toHaveLength(told + 1);
    expect(sticky(pull)).toContain('1 open cause, about 40 ms of an 812 ms step · 1 acknowledged');
    const row = sticky(pull)
      .split('\n')
      .find((line) => line.includes('~~'))!;
    expect(row).toContain(`| 94 ms | 94 ms | \`maintainer\`, ${day} |`);
    expect(row).not.toMatch(/@octocat|<img|(?<!\\)\]\(|:\/\/|\u202e/);
    expect(check(pull)).toMatchObject({ conclusion: 'failure', title: 'Gate failed: 1 open cause, 1 acknowledged' });

    expect(await say(repository, pull, 'maintainer', '／npu-advise　ack　１，已知问题')).toBe('+1');
    expect(check(pull)).toMatchObject({ status: 'completed', conclusion: 'success' });
    expect(check(pull).actions.map(({ identifier }) => identifier)).toEqual(['rerun']);
    expect(sticky(pull)).toContain('✅ NPU Advisor: gate passed, nothing to change · 2 acknowledged');
    expect(sticky(pull)).toContain('已知问题');
    expect(sticky(pull)).toContain(' acked=');
  });

  it('is listed by status, with how it stands', async () => {
    await say(repository, pull, 'stranger', '/npu-advise status');
    const status = replies(pull).at(-1)!;
    expect(status).toContain('Acknowledged: 2');
    expect(status).toMatch(/slow-2.*`maintainer`, \d{4}-\d\d-\d\d, until it grows.*已知问题/);
    // Asked again just below, the answer is brought up to date.
    const count = replies(pull).length;
    await say(repository, pull, 'reader', '/npu-advise status');
    expect(replies(pull)).toHaveLength(count);
    expect(replies(pull).at(-1)).toContain('asked by `reader`');
  });

  it('stays so over a push, until its cost grows; its artifact may be gone meanwhile', async () => {
    repository.pushTo(pull, { 'train.py': `# a line above\n${TRAIN_PY}# next\n` });
    await jobs.take('pull_request', { action: 'synchronize', pr: pull });
    expect(sticky(pull)).toContain(`analysing \`${pull.headSha.slice(0, 7)}\``);
    expect(sticky(pull)).toContain('2 acknowledged');
    const plan = {
      findings: [
        { id: 'loader-1', likely: 97 },
        { id: 'slow-2', likely: 60 },
      ],
    };
    const artifact = await upload(repository, pull, plan);
    expect(check(pull)).toMatchObject({ conclusion: 'failure', title: 'Gate failed: 1 open cause, 1 acknowledged' });
    expect(check(pull).text).toContain('`maintainer` acknowledged it at 40');
    await say(repository, pull, 'stranger', '/npu-advise status');
    expect(replies(pull).at(-1)).toContain('open again, its cost has grown');

    repository.expireArtifact(artifact);
    expect(await say(repository, pull, 'maintainer', '/npu-advise unack loader-1\n/npu-advise ack slow-2 now it is this')).toBe('+1');
    expect(sticky(pull)).toContain('1 open cause, about 97 ms');
    expect(check(pull).conclusion).toBe('failure');
    expect(await say(repository, pull, 'maintainer', '/npu-advise unack loader-1')).toBe('confused');
    expect(replies(pull).at(-1)).toContain('That is not acknowledged.');
  });

  it('comes back when its day has passed', async () => {
    const day = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    expect(await say(repository, pull, 'maintainer', `/npu-advise ack all short until ${day}`)).toBe('+1');
    expect(check(pull).conclusion).toBe('success');
    jobs.advance(3 * 86_400_000);
    await jobs.sweep();
    expect(check(pull)).toMatchObject({ conclusion: 'failure' });
    expect(check(pull).text).toContain(`ended on ${day}`);
  });

  it('all at once by the button, for who may write', async () => {
    const before = check(pull).history.length;
    await press(pull, 'ack-all', 'alice');
    await press(pull, 'ack-all', 'stranger');
    expect(check(pull)).toMatchObject({ status: 'completed', conclusion: 'failure' });
    expect(check(pull).history.length).toBe(before + 2);
    await press(pull, 'ack-all', 'maintainer');
    expect(check(pull)).toMatchObject({ status: 'completed', conclusion: 'success' });
    expect(sticky(pull)).toContain('`maintainer`');
  });
});

describe('a number', () => {
  it.each([
    ['', 5000],
    [', also by a server whose clock is slow', -600_000],
  ])('means what was shown when it was written, or nothing%s', async (_, ahead) => {
    const repository = repositoryWith('gate: { severity: high }\n');
    const pull = openPull({ repository });
    await upload(repository, pull, BOTH);
    // Written before the next report, read after it.
    const early = repository.comment(pull, 'maintainer', '/npu-advise ack 1');
    const delivery = await jobs.make('issue_comment', { action: 'created', comment: early });
    jobs.advance(ahead);
    jobs.hub.advanceClock(5000);
    repository.pushTo(pull, { 'train.py': `${TRAIN_PY}# next\n` });
    await jobs.take('pull_request', { action: 'synchronize', pr: pull });
    expect(await say(repository, pull, 'maintainer', '/npu-advise ack all')).toBe('confused');
    expect(replies(pull).at(-1)).toContain(`\`${pull.headSha.slice(0, 7)}\` has no report yet`);
    await upload(repository, pull, { findings: [{ id: 'other-3', likely: 200 }, ...BOTH.findings!] });
    await jobs.accept(delivery);
    await jobs.workOff();
    expect(replies(pull).at(-1)).toContain('The summary has changed since you wrote this');
    expect(check(pull).title).toContain('3 causes');

    expect(await say(repository, pull, 'maintainer', '/npu-advise ack 1')).toBe('+1');
    expect(sticky(pull)).toContain('1 acknowledged');
    expect((await jobs.deps.store.acknowledgements.of(repository.id, pull.number)).map(({ finding }) => finding)).toEqual(['other-3']);
    jobs.advance(-ahead);
  });
});

describe('a pull request that was closed', () => {
  it('and is opened again, shows what was acknowledged meanwhile', async () => {
    const repository = repositoryWith('gate: { severity: high }\n');
    const pull = openPull({ repository });
    await upload(repository, pull, BOTH);
    repository.closePullRequest(pull);
    await jobs.take('pull_request', { action: 'closed', pr: pull });
    expect(await say(repository, pull, 'maintainer', '/npu-advise run')).toBe('confused');
    expect(replies(pull).at(-1)).toContain('This pull request is closed');
    expect(await say(repository, pull, 'maintainer', '/npu-advise ack loader-1 booked')).toBe('+1');
    expect(check(pull)).toMatchObject({ conclusion: 'failure', title: 'Gate failed: 2 causes, about 134 of 812 ms per step' });
    const before = downloads();
    repository.reopenPullRequest(pull);
    await jobs.take('pull_request', { action: 'reopened', pr: pull });
    expect(check(pull)).toMatchObject({ status: 'completed', title: 'Gate failed: 1 open cause, 1 acknowledged' });
    expect(sticky(pull)).toContain('1 acknowledged');
    expect(downloads()).toBe(before);
  });
});

describe('several jobs of a repository', () => {
  it('have findings of their own: a number that two share is asked back, an id is not', async () => {
    const repository = repositoryWith('jobs: { bert: { gate: { severity: high } }, gpt: { gate: { severity: high } } }\n');
    const pull = openPull({ repository });
    const run = repository.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'success' });
    for (const [name, id] of [
      ['bert', 'loader-1'],
      ['gpt', 'loader-1'],
    ]) {
      const zipBuffer = makeZip({ 'prof/plan.json': JSON.stringify({ findings: [{ id }] }) });
      repository.addArtifact(run, { name: `npu-profile-${name}`, zipBuffer });
    }
    await jobs.take('workflow_run', { action: 'completed', run });
    expect(check(pull).conclusion).toBe('failure');
    expect(await say(repository, pull, 'maintainer', '/npu-advise ack 1')).toBe('confused');
    expect(replies(pull).at(-1)).toContain('`1` names several: 1 = `loader-1.bert`, 1 = `loader-1.gpt`.');
    expect(await say(repository, pull, 'maintainer', '/npu-advise ack loader-1.bert booked')).toBe('+1');
    expect(check(pull)).toMatchObject({ status: 'completed', conclusion: 'failure' });
    expect(sticky(pull)).toContain('| `maintainer`, until it grows | booked |');
    expect(await say(repository, pull, 'maintainer', '/npu-advise ack all')).toBe('+1');
    expect(check(pull).conclusion).toBe('success');
  });
});

describe('a pull request that goes into another branch', () => {
  const changes = { base: { ref: { from: 'main' }, sha: { from: 'a'.repeat(40) } } };
  const ZH = 'lang: zh\ngate: { severity: high }\nmute: [{ rule: dataloader-stall, path: train.py, reason: known }]\n';
  const withBranches = (): RepositoryHandle => {
    const repository = repositoryWith('comment: off\n');
    repository.commitFile('.github/npu-advisor.yml', ZH, { branch: 'release' });
    repository.commitFile('.github/npu-advisor.yml', 'gate: { severity: high }\n', { branch: 'plain' });
    return repository;
  };

  it('is judged by the settings there, also where its profile is gone', async () => {
    const repository = withBranches();
    const pull = openPull({ repository });
    const artifact = await upload(repository, pull, BOTH);
    expect(check(pull).conclusion).toBe('neutral');
    expect(sticky(pull)).toBe('');
    repository.retarget(pull, 'release');
    await jobs.take('pull_request', { action: 'edited', pr: pull, changes });
    expect(check(pull)).toMatchObject({ status: 'completed', conclusion: 'failure', title: expect.stringContaining('门禁') });
    expect(sticky(pull)).toContain('.github/npu-advisor.yml');

    repository.retarget(pull, 'plain');
    await jobs.take('pull_request', { action: 'edited', pr: pull, changes });
    expect(check(pull)).toMatchObject({ conclusion: 'failure', title: 'Gate failed: 2 causes, about 134 of 812 ms per step' });
    repository.expireArtifact(artifact);
    repository.commitFile('.github/npu-advisor.yml', 'gate: { total_saving: { ms: 5 } }\nmute: [{ rule: "*" }]\n', { branch: 'plain' });
    await jobs.take('pull_request', { action: 'edited', pr: pull, changes });
    expect(check(pull)).toMatchObject({ status: 'completed', conclusion: 'success', title: expect.stringContaining('2 acknowledged') });
  });

  it('waits for its profile as the settings there say', async () => {
    const repository = withBranches();
    const pull = openPull({ repository });
    await jobs.take('pull_request', { action: 'opened', pr: pull });
    const before = (await jobs.deps.store.checks.find(repository.id, pull.headSha, pull.number))!;
    repository.retarget(pull, 'release');
    await jobs.take('pull_request', { action: 'edited', pr: pull, changes });
    expect(check(pull)).toMatchObject({ status: 'queued', title: expect.stringMatching(/^等待/) });
    expect((await jobs.deps.store.checks.find(repository.id, pull.headSha, pull.number))!.deadlineAt).toBeGreaterThan(before.deadlineAt!);
  });
});

describe('settings of the base branch', () => {
  it('mute by rule and path; those of the change itself do not', async () => {
    const repository = repositoryWith('gate: { severity: high }\nmute: [{ rule: dataloader-stall, path: train.py, reason: known }]\n');
    const change = { 'train.py': TRAIN_PY, '.github/npu-advisor.yml': 'mute: [{ rule: "*" }]\n' };
    const pull = repository.openPullRequest({ author: 'alice', branch: 'mute', title: 'mute', changes: change });
    await upload(repository, pull, BOTH);
    expect(check(pull)).toMatchObject({ conclusion: 'failure', title: 'Gate failed: 1 open cause, 1 acknowledged' });
    expect(sticky(pull)).toContain('muted in `.github/npu-advisor.yml` of the base branch');
    expect(jobs.hub.view(pull).reviews).toEqual([]);
    expect(await say(repository, pull, 'maintainer', '/npu-advise ack 2')).toBe('confused');
    expect(await say(repository, pull, 'maintainer', '/npu-advise unack 2')).toBe('confused');
    expect(replies(pull).join('\n')).toMatch(/muted by the settings already[\s\S]*muted by the settings, not acknowledged/);
  });

  it('are shown by config, each with its file', async () => {
    const repository = repositoryWith('_extends: shared\nlang: zh\ngate: { severity: high }\n');
    const shared = { '.github/npu-advisor.yml': 'comment: always\nlang: en\ngate: { total_saving: { ms: 5 } }\n' };
    jobs.hub.addRepository({ owner: 'acme', name: 'shared', files: shared });
    const pull = openPull({ repository });
    expect(await say(repository, pull, 'alice', '/npu-advise config')).toBe('confused');
    expect(await say(repository, pull, 'maintainer', '/npu-advise config')).toBe('+1');
    const shown = replies(pull).at(-1)!;
    expect(shown).toContain('| `lang` | `"zh"` | `.github/npu-advisor.yml` |');
    expect(shown).toContain('| `comment` | `"always"` | `acme/shared:.github/npu-advisor.yml` |');
    expect(shown).toContain('| `gate.severity` | `"high"` | `.github/npu-advisor.yml` |');
    expect(shown).toContain('| `gate.total_saving` | `{"ms":5}` | `acme/shared:.github/npu-advisor.yml` |');
    expect(shown).toContain('| `on_missing` | `"neutral"` | 默认 |');
  });
});

describe('a check with more than fifty annotations', () => {
  it('gets each of them once, in several requests, and keeps them when it is said again', async () => {
    const repository = repositoryWith('suggestions: off\ncomment: off\n');
    const lines = Array.from({ length: 60 }, (_, i) => `x = ${i}\n`).join('');
    const pull = openPull({ repository }, { train: lines });
    const findings = Array.from({ length: 60 }, (_, i) => ({
      id: `cause-${i}`,
      edit: { file: 'train.py', line: i + 1, after: `x = -${i}` },
    }));
    await upload(repository, pull, { findings });
    const placed = (): number[] => check(pull).annotations.map(({ startLine }) => startLine);
    expect(placed()).toHaveLength(60);
    expect(new Set(placed()).size).toBe(60);
    expect(await say(repository, pull, 'maintainer', '/npu-advise ack cause-7')).toBe('+1');
    await jobs.take('check_run', { action: 'rerequested', check: { pr: pull, name: 'NPU Advisor' } }, { sender: 'alice' });
    expect(placed()).toHaveLength(60);
    expect(check(pull)).toMatchObject({ status: 'completed', conclusion: 'neutral' });
  });
});

describe('other commands', () => {
  it('explain a finding with its proof, and a rule with its thresholds', async () => {
    const repository = repositoryWith('thresholds: { dataloader-stall: { minShare: 0.04 } }\ndisabled_rules: [op-recompile]\n');
    const pull = openPull({ repository });
    await upload(repository, pull, BOTH);
    const lines = [
      '/npu-advise explain 1',
      '/npu-advise explain dataloader-stall',
      '/npu-advise explain op-recompile',
      '/npu-advise explain datloader-stall',
    ];
    expect(await say(repository, pull, 'stranger', lines.join('\n'))).toBe('confused');
    const [finding, rule, off, unknown] = replies(pull);
    expect(finding).toContain('The card had nothing to do');
    expect(finding).toContain('+loader = DataLoader(data, num_workers=8)');
    expect(rule).toMatch(/Last report: cause found/);
    expect(off).toContain('Switched off in the settings.');
    expect(unknown).toContain('did you mean `dataloader-stall`?');
  });

  it('compare kept profiles, the nearest where there is none of the commit itself, or say kindly that there is none', async () => {
    const repository = repositoryWith('comment: off\n');
    const pull = openPull({ repository });
    const base = repository.branchSha();
    const ask = async (words: string): Promise<string> => {
      const comment = repository.comment(pull, 'alice', `/npu-advise compare ${words}`.trim());
      await jobs.take('issue_comment', { action: 'created', comment });
      return plain(replies(pull).find((body) => body.includes(` comment=${comment.id} `)) ?? null);
    };
    expect(await ask('')).toMatch(/No profile of the head `[0-9a-f]{7}` is kept\./);
    const keep = (sha: string, branch: string | null, plan: Plan, recordedAt: number): Promise<void> => {
      const of = { repoId: repository.id, installationId: repository.installationId ?? 0, job: 'default', sha, branch, trusted: true };
      const metrics = { stepTimeMs: 742, freeShare: null, exposedMs: null, top: [] };
      const facts = { schema: FACTS_SCHEMA, bytes: makeZip({ 'plan.json': JSON.stringify(plan) }) };
      const pr = branch === null ? pull.number : null;
      return jobs.deps.store.profiles.put({ ...of, pr, origin: `${sha}/${branch}`, recordedAt, metrics }, facts);
    };
    await keep(pull.headSha, null, { comparison: comparison('en') }, jobs.deps.now());
    expect(await ask('')).toContain('No profile of `main`');
    expect(await ask('no-such-branch')).toContain('no branch, tag or commit `no-such-branch`');
    expect(await ask(pull.headSha.slice(0, 8))).toContain('is the head of this pull request itself');
    await keep(base, 'main', {}, jobs.deps.now() - 3 * 86_400_000);
    const told = await ask('');
    expect(told).toContain(`Base: \`${base.slice(0, 7)}\` (\`main\`), profiled 3 days ago.`);
    expect(told).toContain('| **Step** | 742 ms | 812 ms | **+70.5 ms');
    expect(await ask('main somejob')).toContain('The settings name no jobs');
    expect(replies(pull).at(-1)).not.toContain('undefined');
  });

  it('suggest posts the review when asked, from what is known, and says why not', async () => {
    const repository = repositoryWith('suggestions: on-request\n');
    const pull = openPull({ repository });
    expect(await say(repository, pull, 'alice', '/npu-advise suggest')).toBe('confused');
    expect(replies(pull).at(-1)).toContain('no report of this commit yet');
    await upload(repository, pull, BOTH);
    expect(check(pull).actions.map(({ identifier }) => identifier)).toEqual(['rerun', 'ack-all', 'suggest']);
    const before = downloads();
    expect(await say(repository, pull, 'stranger', '/npu-advise suggest')).toBe('confused');
    expect(jobs.hub.view(pull).reviews).toEqual([]);
    expect(await say(repository, pull, 'alice', '/npu-advise suggest')).toBe('+1');
    expect(jobs.hub.view(pull).reviews).toHaveLength(1);
    expect(downloads()).toBe(before);
    expect(await say(repository, pull, 'alice', '/npu-advise suggest')).toBe('confused');
    expect(replies(pull).at(-1)).toContain('posted already');
  });

  it('that fail on every try say so once, with the number of the log', async () => {
    const repository = repositoryWith('lang: en\n');
    const pull = openPull({ repository });
    const fault = jobs.hub.fault({ match: /^GET \S*\/commits\/\w+\/check-runs|^GET \S*\/actions\/runs/, status: 500, times: 1000 });
    expect(await say(repository, pull, 'alice', '/npu-advise status')).toBe('confused');
    fault.times = 0;
    expect(replies(pull)).toHaveLength(1);
    expect(replies(pull)[0]).toMatch(/did not work after several tries\. .* under `[0-9a-f]{8}`/);
  });

  it('are edited by nobody and answered once when the delivery comes twice', async () => {
    const repository = repositoryWith('lang: zh\n');
    const pull = openPull({ repository });
    const comment = repository.comment(pull, 'maintainer', '/npu-advise ack 1');
    await jobs.take('issue_comment', { action: 'edited', comment, previousBody: 'x' });
    expect(replies(pull)).toEqual([]);
    const delivery = await jobs.make('issue_comment', { action: 'created', comment });
    await jobs.accept(delivery);
    await jobs.workOff();
    await jobs.accept(delivery);
    await jobs.workOff();
    expect(replies(pull)).toHaveLength(1);
    expect(replies(pull)[0]).toContain('本 PR 尚无报告。');
  });
});
