/* Profiles outside of workflow runs: what binds them to a commit, and which addresses are asked. */
import { describe, expect, it } from 'vitest';
import { queueCheck, queueDeadline, readQueueRef } from '../../src/app/jobs/merge-queue.ts';
import { isBranchRun } from '../../src/app/jobs/record-branch.ts';
import { run } from '../../src/commands/run.ts';
import { parseConfig } from '../../src/config/parse.ts';
import { attachmentsIn, namesCommit, profileFiles, readAttachment } from '../../src/github/elsewhere.ts';
import { createOutboundPolicy, GITHUB_ARTIFACT_HOSTS } from '../../src/github/outbound.ts';

const SHA = '3f2a91c04b5d6e7f8091a2b3c4d5e6f708192a3b';
const repository = { id: 7, owner: 'acme', name: 'train' };
const WEB = 'https://github.com/acme/train';

describe('a name that binds a file to a commit', () => {
  it.each([
    ['npu-profile-3f2a91c.zip', true],
    [`facts_${SHA}.json`, true],
    ['NPU-3F2A91C04B.tar.gz', true],
    ['npu-profile-3f2a91cd.zip', false],
    ['npu-profile-3f2a91.zip', false],
    ['npu-profile-0000000.zip', false],
    ['npu-profile.zip', false],
    [`x${SHA}${SHA}`, false],
  ])('%s: %s', (name, is) => {
    expect(namesCommit(name, SHA)).toBe(is);
  });
});

describe('an attachment', () => {
  it.each([
    ['https://github.com/user-attachments/files/123/prof.zip', { id: 123, name: 'prof.zip' }],
    ['https://github.com/user-attachments/files/123/%E5%8D%A1.json', { id: 123, name: '卡.json' }],
    ['https://github.com/acme/train/files/9/prof.zip', { id: 9, name: 'prof.zip' }],
    ['https://github.com/mallory/other/files/9/prof.zip', null],
    ['https://github.com.evil.example/user-attachments/files/1/prof.zip', null],
    ['https://evil.example/user-attachments/files/1/prof.zip', null],
    ['https://github.com@evil.example/user-attachments/files/1/prof.zip', null],
    ['https://u:p@github.com/user-attachments/files/1/prof.zip', null],
    ['https://github.com:8443/user-attachments/files/1/prof.zip', null],
    ['http://github.com/user-attachments/files/1/prof.zip', null],
    ['https://github.com/user-attachments/files/1/prof.zip?x=1', null],
    ['https://github.com/user-attachments/assets/1/prof.zip', null],
    ['https://github.com/user-attachments/files/1/..%2f..%2fx', { id: 1, name: '../../x' }],
    ['https://github.com/user-attachments/files/1/%E5%8D', null],
    ['javascript:alert(1)', null],
    ['', null],
  ])('%s', (address, file) => {
    expect(readAttachment(address, repository, WEB)).toEqual(file);
  });

  it('in a description counts by its name, once, and no text around it matters', () => {
    const link = `https://github.com/user-attachments/files/5/npu-3f2a91c.zip`;
    const body = `Profile: [npu](${link}) and again <${link}>\n[old](https://github.com/user-attachments/files/4/npu-1111111.zip)\nhttps://evil.example/user-attachments/files/6/npu-3f2a91c.zip`;
    expect(attachmentsIn(body, repository, WEB, SHA).map(({ id, place }) => [id, place])).toEqual([[5, { kind: 'attachment', url: link }]]);
  });

  it.each([
    [['https://github.com/user-attachments/files/5/prof.zip'], 'https://github.com/user-attachments/files/5/prof.zip'],
    [['[my', 'prof.zip](https://github.com/user-attachments/files/5/prof.zip)'], 'https://github.com/user-attachments/files/5/prof.zip'],
    [['https://github.com/acme/train/actions/runs/17/artifacts/4'], undefined],
    [['npu-profile'], undefined],
  ])('is what `run` is pointed at: %j', (args, attachment) => {
    const parsed = run.parse(args) as { ok: boolean; args: { wanted: { attachment?: string } } };
    expect(parsed.ok && parsed.args.wanted.attachment).toBe(attachment);
  });

  it('is asked for on the host people see, by https and a public address, and nowhere else', () => {
    const policy = createOutboundPolicy(GITHUB_ARTIFACT_HOSTS, 'https://api.github.com');
    const may = (url: string): boolean => {
      try {
        return policy.check(new URL(url)).lookup !== undefined;
      } catch {
        return false;
      }
    };
    expect(may('https://github.com/user-attachments/files/1/x.zip')).toBe(true);
    expect(may('https://objects.githubusercontent.com/x?sig=1')).toBe(true);
    expect(may('https://release-assets.githubusercontent.com/x')).toBe(true);
    expect(may('http://github.com/user-attachments/files/1/x.zip')).toBe(false);
    expect(may('https://github.com:444/x')).toBe(false);
    expect(may('https://gist.github.com/x')).toBe(false);
    const server = createOutboundPolicy(['storage.ghes.example'], 'https://ghes.example/api/v3');
    expect(() => server.check(new URL('https://github.com/user-attachments/files/1/x.zip'))).toThrow(/not allowed/);
    expect(server.check(new URL('https://ghes.example/user-attachments/files/1/x.zip'))).toEqual({ lookup: undefined });
  });
});

it('files of a pull request are those it adds or changes, at its head', () => {
  const file = (path: string, status = 'added') => ({ path, status, patch: null, bytesHint: 1 });
  const files = profileFiles([file('perf/a.json'), file('perf/b.zip', 'removed'), file('train.py')], ['perf/*'], SHA);
  expect(files).toMatchObject([{ name: 'a.json', headSha: SHA, place: { kind: 'file', path: 'perf/a.json', ref: SHA } }]);
});

it('assets are only configured with a place for the commit', () => {
  expect(parseConfig('release: { tag: npu }', 'x')).toMatchObject({ ok: true, value: { release: { assets: ['npu-profile-{sha}*'] } } });
  expect(parseConfig('release: { tag: npu, assets: ["npu*"] }', 'x').ok).toBe(false);
});

describe('runs that may become a baseline', () => {
  const base = { id: 1, attempt: 1, name: 'perf', path: 'x', htmlUrl: null, headSha: SHA, headOwner: 'acme', listed: [] };
  const task = (over: object, defaultBranch: string | null = 'main') => ({
    repository,
    defaultBranch,
    run: { ...base, event: 'push', headBranch: 'main', headRepoId: 7, ...over },
  });
  it.each([
    ['a push to the default branch', {}, false, true],
    ['a nightly run', { event: 'schedule' }, false, true],
    ['one started by hand', { event: 'workflow_dispatch' }, false, true],
    ['a push to a branch of no pull request: the settings decide', { headBranch: 'release/1' }, true, true],
    ['a push to the branch of a pull request', { headBranch: 'faster' }, false, false],
    ['of a fork, from a branch of that name', { headRepoId: 8 }, true, false],
    ['of a fork that is gone', { headRepoId: null }, true, false],
    ['set off by a pull request', { event: 'pull_request' }, true, false],
    ['set off by a pull request, with the rights of the base', { event: 'pull_request_target' }, true, false],
    ['of the merge queue', { event: 'merge_group', headBranch: `gh-readonly-queue/main/pr-4-${SHA}` }, true, true],
    ['of a tag', { headBranch: null }, true, false],
  ])('%s', (_, over, isAlone, is) => {
    expect(isBranchRun(task(over), isAlone)).toBe(is);
  });
});

describe('the merge queue', () => {
  it.each([
    [`refs/heads/gh-readonly-queue/main/pr-12-${SHA}`, { base: 'main', pr: 12 }],
    [`gh-readonly-queue/release/1.x/pr-3-${SHA}`, { base: 'release/1.x', pr: 3 }],
    ['refs/heads/main', null],
    [`refs/heads/gh-readonly-queue/main/pr-x-${SHA}`, null],
    [null, null],
  ])('names its base and pull request: %s', (ref, queue) => {
    expect(readQueueRef(ref)).toEqual(queue);
  });

  it('is waited for less than an hour, unless the settings say how long', () => {
    expect(queueDeadline({ deadline_minutes: 180 }, false)).toBe(50);
    expect(queueDeadline({ deadline_minutes: 180 }, true)).toBe(180);
    expect(queueDeadline({ deadline_minutes: 30 }, true)).toBe(30);
    expect(queueDeadline({ deadline_minutes: 240 }, true)).toBe(240);
  });

  it.each([
    [{ phase: 'completed', conclusion: 'success' }, 'success', /ended with `success`/],
    [{ phase: 'completed', conclusion: 'failure' }, 'neutral', /ended with `failure`/],
    [{ phase: 'completed', conclusion: 'skipped' }, 'neutral', /ended with `skipped`/],
    [{ phase: 'queued', conclusion: null }, 'neutral', /no conclusion yet/],
    [null, 'neutral', /decided/],
  ] as const)('is never held up: %j', (verdict, conclusion, summary) => {
    const check = queueCheck(4, verdict, 'en');
    expect(check).toMatchObject({ status: 'completed', conclusion });
    expect(check.summary).toMatch(summary);
    expect(queueCheck(4, verdict, 'zh').summary).toMatch(/profile/);
  });
});
