/* Several training jobs of one repository, and settings that lie in another one: the jobs in this process, on a loopback GitHub. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PullHandle, RepositoryHandle } from '../../lab/loopback-github/index.ts';
import type { Plan } from './support/fake-analyser.ts';
import { type Jobs, openJobs } from './support/jobs.ts';
import { addRun, TRAIN_PY } from './support/world.ts';
import { makeZip } from './support/zip.ts';

let jobs: Jobs;
beforeAll(async () => {
  jobs = await openJobs();
});
afterAll(() => jobs.close());
afterEach(() => expect(jobs.hub.violations).toEqual([]));

const SETTINGS = `lang: zh
gate: { severity: high }
jobs:
  bert: { paths: [bert/*], gate: null }
  gpt: { paths: [gpt/*] }
  vision: { paths: [vision/*], on_missing: failure }
`;
const causes = (id: string): Plan => ({
  findings: [{ id: `dataloader-stall-${id}`, edit: { file: 'bert/train.py', line: 2, after: 'loader = DataLoader(data, num_workers=8)' } }],
});
const QUIET: Plan = { findings: [] };

let count = 0;
function repositoryWith(config: string | null, over: { name?: string; private?: boolean; owner?: string } = {}): RepositoryHandle {
  const files = { 'bert/train.py': 'import torch\n', ...(config === null ? {} : { '.github/npu-advisor.yml': config }) };
  return jobs.hub.addRepository({ owner: 'acme', name: `jobs-${++count}`, files, ...over });
}
function openPull(repository: RepositoryHandle, changes: Record<string, string>): PullHandle {
  return repository.openPullRequest({
    author: 'alice',
    branch: `b-${++count}`,
    title: 'x',
    changes: { ...changes, 'notes.txt': `${count}\n` },
  });
}
const completed = (run: ReturnType<typeof addRun>) => jobs.take('workflow_run', { action: 'completed', run });

describe('several jobs', () => {
  it('are one comment and one check, each judged by its own gate, with ids of their own', async () => {
    const repository = repositoryWith(SETTINGS);
    const pull = openPull(repository, { 'bert/train.py': TRAIN_PY, 'gpt/model.py': 'x = 1\n' });
    await jobs.take('pull_request', { action: 'opened', pr: pull });
    const run = repository.addWorkflowRun({ pr: pull, status: 'in_progress' });
    await completed(addRun({ repository }, pull, causes('a'), 'ascend-profile-bert'));
    // The run of gpt goes on: nothing is published, and nothing passes.
    expect(jobs.hub.view(pull)).toMatchObject({
      comments: [],
      checks: [{ status: 'in_progress', title: expect.stringContaining('已收到 1 份') }],
    });
    expect(jobs.hub.view(pull).checks[0]!.summary).toMatch(/- `bert`：profile 已收到\n- `gpt`：等待中，正在运行：/);

    repository.addArtifact(run, { name: 'ascend-profile-gpt', zipBuffer: makeZip({ 'plan.json': JSON.stringify(causes('a')) }) });
    repository.updateWorkflowRun(run, { status: 'completed' });
    await completed(run);
    const { comments, checks, reviews } = jobs.hub.view(pull);
    expect(comments).toHaveLength(1);
    const [comment] = comments;
    expect(comment!.body).toMatch(
      /^<!-- npu-advisor:v1 app=npu-advisor pr=\d+ -->\n<!-- npu-advisor:state .* jobs=bert,gpt -->\n### ❌ NPU Advisor/,
    );
    expect(comment!.body).toContain('findings=dataloader-stall-a.bert,dataloader-stall-a.gpt');
    // The worst first; what the pull request does not change is named and not missed.
    expect(comment!.body.indexOf('| `gpt` | ❌')).toBeLessThan(comment!.body.indexOf('| `bert` | ⚠️'));
    expect(comment!.body).toContain('未改动、因此未检查的作业：`vision`');
    expect(checks).toHaveLength(1);
    expect(checks[0]).toMatchObject({ status: 'completed', conclusion: 'failure', title: expect.stringMatching(/^gpt: /) });
    expect(checks[0]!.text).toMatch(/## `gpt`[\s\S]*## `bert`/);
    expect(checks[0]!.annotations.map(({ title }) => title?.split(':')[0])).toEqual(['gpt', 'bert']);
    // The same line in both jobs is one suggestion.
    expect(reviews[0]?.comments).toHaveLength(1);

    // The same again changes nothing; a job that has become quiet is fixed in its own part only.
    await completed(run);
    expect(jobs.hub.view(pull).comments).toMatchObject([{ id: comment!.id, body: comment!.body }]);
  });

  it('that a pull request does not change are not asked for', async () => {
    const repository = repositoryWith(SETTINGS);
    const pull = openPull(repository, { 'README.md': 'words\n' });
    await jobs.take('pull_request', { action: 'opened', pr: pull });
    const { comments, checks } = jobs.hub.view(pull);
    expect(comments).toEqual([]);
    expect(checks).toMatchObject([{ status: 'completed', conclusion: 'neutral', title: '没有改动训练作业' }]);

    const moved = repository.openPullRequest({
      author: 'alice',
      branch: 'moved',
      title: 'x',
      changes: { 'bert/train.py': null, 'other/train.py': 'import torch\n' },
    });
    await jobs.take('pull_request', { action: 'opened', pr: moved });
    expect(jobs.hub.view(moved).checks).toMatchObject([{ status: 'queued' }]);
  });

  it('are all asked for where GitHub does not list everything that a pull request changes', async () => {
    const repository = repositoryWith(SETTINGS);
    const many = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`a/${i}.txt`, 'x']));
    const pull = openPull(repository, { ...many, 'vision/net.py': 'x = 1\n' });
    await jobs.take('pull_request', { action: 'opened', pr: pull });
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'queued' }]);
  });

  it('are concluded at the deadline by what has come', async () => {
    const repository = repositoryWith(SETTINGS);
    const pull = openPull(repository, { 'bert/train.py': TRAIN_PY, 'vision/net.py': 'x = 1\n' });
    await jobs.take('pull_request', { action: 'opened', pr: pull });
    await completed(addRun({ repository }, pull, QUIET, 'ascend-profile-bert'));
    jobs.advance(181 * 60_000);
    await jobs.sweep();
    const [check] = jobs.hub.view(pull).checks;
    expect(check).toMatchObject({ status: 'completed', conclusion: 'failure', title: expect.stringMatching(/^vision: /) });
    expect(check!.summary).toContain('on_missing: failure');
    expect(check!.summary).toContain('name: ascend-profile-vision,');
    expect(check!.summary).toMatch(/\| `bert` \| ✅/);
  });
});

describe('what is awaited', () => {
  const started = (run: ReturnType<typeof addRun>) => jobs.take('workflow_run', { action: 'in_progress', run });
  const readsSince = (mark: number) => jobs.hub.journal.slice(mark).filter(({ path }) => !path.includes('access_tokens'));

  it('is a run that has started: the check is in progress and names it, once, and never again when it is concluded', async () => {
    const repository = repositoryWith('workflows: [.github/workflows/train.yml]\ndeadline_minutes: 30\n');
    const pull = openPull(repository, { 'bert/train.py': TRAIN_PY });
    await jobs.take('pull_request', { action: 'opened', pr: pull });
    const other = repository.addWorkflowRun({ pr: pull, status: 'in_progress', name: 'lint', path: '.github/workflows/lint.yml' });
    await started(other);
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'queued' }]);
    const run = repository.addWorkflowRun({ pr: pull, status: 'queued', name: 'train', path: '.github/workflows/train.yml' });
    await completed(other);
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'queued', summary: expect.stringMatching(/^Waiting for a runner: /) }]);
    repository.updateWorkflowRun(run, { status: 'in_progress' });
    await started(run);
    const underway = { status: 'in_progress', summary: expect.stringMatching(/^The profile run is underway: \[train\]/) };
    expect(jobs.hub.view(pull).checks).toMatchObject([underway]);
    const mark = jobs.hub.journal.length;
    await started(run);
    expect(readsSince(mark)).toEqual([]);
    expect(await jobs.deps.store.checks.find(repository.id, pull.headSha, pull.number)).toMatchObject({ phase: 'queued' });

    // It is still waited for, and not for ever.
    jobs.advance(31 * 60_000);
    await jobs.sweep();
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'completed', conclusion: 'neutral' }]);
    await started(run);
    expect(jobs.hub.view(pull).checks).toMatchObject([{ status: 'completed' }]);
  });

  it('of a new commit stands below the figures of the last one, job by job', async () => {
    const repository = repositoryWith(SETTINGS);
    const pull = openPull(repository, { 'bert/train.py': TRAIN_PY, 'gpt/model.py': 'x = 1\n' });
    const both = addRun({ repository }, pull, causes('a'), 'ascend-profile-bert');
    repository.addArtifact(both, { name: 'ascend-profile-gpt', zipBuffer: makeZip({ 'plan.json': JSON.stringify(QUIET) }) });
    await completed(both);
    const sticky = () => jobs.hub.view(pull).comments[0]!.body;
    expect(sticky()).not.toContain('npu-advisor:pending');
    const old = pull.headSha.slice(0, 7);
    repository.pushTo(pull, { 'gpt/model.py': 'x = 2\n' });
    await jobs.take('pull_request', { action: 'synchronize', pr: pull });
    expect(sticky()).toContain(`<sub>\`${pull.headSha.slice(0, 7)}\` 等待：\`bert\`、\`gpt\`；以上数据来自 \`${old}\`</sub>`);
    const run = repository.addWorkflowRun({ pr: pull, status: 'in_progress' });
    await completed(addRun({ repository }, pull, QUIET, 'ascend-profile-bert'));
    expect(sticky()).toContain('等待：`gpt`；已收到：`bert`');
    repository.addArtifact(run, { name: 'ascend-profile-gpt', zipBuffer: makeZip({ 'plan.json': JSON.stringify(QUIET) }) });
    repository.updateWorkflowRun(run, { status: 'completed' });
    await completed(run);
    expect(sticky()).not.toContain('npu-advisor:pending');
    expect(jobs.hub.view(pull).comments).toHaveLength(1);
  });
});

describe('settings of another repository', () => {
  it('are read where the App is installed, private or not, and laid below', async () => {
    repositoryWith('_extends: perf-settings:npu.yml\ncomment: always\n', { name: '.github' });
    const shared = jobs.hub.addRepository({
      owner: 'acme',
      name: 'perf-settings',
      private: true,
      files: { 'npu.yml': 'lang: zh\ncomment: off\n' },
    });
    const repository = repositoryWith(null);
    const pull = openPull(repository, { 'bert/train.py': TRAIN_PY });
    await completed(addRun({ repository }, pull, QUIET));
    expect(jobs.hub.view(pull).comments).toHaveLength(1);
    expect(jobs.hub.view(pull).comments[0]!.body).toContain('lang=zh');

    // A mistake there is told without what stands there.
    shared.commitFile('npu.yml', 'lang: zh\nsecret_key: hunter2\n');
    const other = openPull(repository, { 'bert/train.py': TRAIN_PY });
    await completed(addRun({ repository }, other, QUIET));
    const [check] = jobs.hub.view(other).checks;
    expect(check).toMatchObject({ conclusion: 'action_required', title: expect.stringContaining('配置') });
    expect(check!.summary).toContain('acme/perf-settings:npu.yml');
    expect(JSON.stringify(jobs.hub.view(other))).not.toMatch(/hunter2|secret_key/);
  });

  it('are not read for what a pull request names, only for what its base names', async () => {
    jobs.hub.addRepository({ owner: 'beta', name: 'secrets', private: true, files: { 'x.yml': 'password: hunter2\n' } });
    const repository = jobs.hub.addRepository({ owner: 'beta', name: 'train', files: { '.github/npu-advisor.yml': 'lang: zh\n' } });
    const propose = (text: string): PullHandle =>
      repository.openPullRequest({
        author: 'mallory',
        branch: `p-${++count}`,
        title: 'x',
        changes: { '.github/npu-advisor.yml': text },
        fork: { owner: 'mallory' },
      });
    const judged = async (pull: PullHandle) => {
      await jobs.take('pull_request', { action: 'opened', pr: pull });
      return jobs.hub.view(pull).checks.find(({ name }) => name === 'NPU Advisor settings');
    };
    const probing = await judged(propose('lang: zh\n_extends: secrets:x.yml\n'));
    // Not a failure: it may be right, and is known once it is merged.
    expect(probing).toMatchObject({ conclusion: 'neutral', title: '配置无法完整检查' });
    expect(probing!.annotations).toMatchObject([
      { startLine: 2, level: 'warning', message: expect.stringContaining('无法读取 beta/secrets') },
    ]);
    expect(JSON.stringify(probing)).not.toMatch(/password|hunter2/);
    expect(jobs.hub.journal.filter(({ path }) => path.includes('/beta/secrets/')).every(({ status }) => status === 404)).toBe(true);

    const wrong = await judged(propose('lang: zh\ngate: { sevrity: high }\n'));
    expect(wrong!.annotations).toMatchObject([
      { startLine: 2, startColumn: 9, endColumn: 15, message: expect.stringContaining('是否想写 severity') },
    ]);
  });
});
