/* The analysis process is ended when it takes too much, and leaves nothing behind. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { type AnalysisRunner, createAnalysisRunner } from '../../src/app/analysis-runner.ts';
import type { AdviseError } from '../../src/base/errors.ts';

const home = mkdtempSync(join(tmpdir(), 'npu-limits-'));
const scratch = join(home, 'scratch');
const analyser = pathToFileURL(join(import.meta.dirname, 'support/unruly-analyser.ts')).href;
beforeEach(() => {
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch);
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const MEMORY_MB = 200;
function runner(timeoutMs = 60_000): AnalysisRunner {
  return createAnalysisRunner(analyser, { timeoutMs, memoryMb: MEMORY_MB }, scratch);
}

const OPTIONS = { lang: 'en', thresholds: {}, disabledRules: [], gate: null } as const;
async function fails(
  how: string,
  { timeoutMs = 60_000, signal = new AbortController().signal, given = [] as string[] } = {},
): Promise<Error> {
  const request = { paths: [how, ...given], partial: [], options: OPTIONS, source: null };
  const error = await runner(timeoutMs)
    .analyse(request, { signal })
    .then(
      () => null,
      (e: unknown) => e,
    );
  expect(error).toBeInstanceOf(Error);
  return error as Error;
}

/** The process of the last analysis is no more. */
async function expectGone(): Promise<void> {
  const pid = Number(readFileSync(join(scratch, 'pid'), 'utf8'));
  await expect.poll(() => existsSync(`/proc/${pid}`), { timeout: 5000 }).toBe(false);
}

describe('an analysis', () => {
  it.each(['spins', 'waits'])('that %s is ended at the time limit', async (how) => {
    const started = Date.now();
    const error = (await fails(how, { timeoutMs: 4000 })) as AdviseError;
    expect(error).toMatchObject({ code: 'analysis-timeout', message: 'the analysis took longer than 4 s' });
    expect(error.hint).toContain('NPU_ADVISOR_ANALYSIS_TIMEOUT_S');
    expect(Date.now() - started).toBeLessThan(10_000);
    await expectGone();
  });

  it.each(['heap', 'buffers', 'a reading thread'])('whose memory grows (%s) is ended at the memory limit', async (how) => {
    const error = (await fails(how)) as AdviseError;
    expect(error).toMatchObject({ code: 'analysis-memory', message: 'the profile needs more memory than this installation allows' });
    expect(error.hint).toContain('NPU_ADVISOR_ANALYSIS_MEMORY_MB');
    await expectGone();
  });

  it('gets files that stacks name, and asks for paths only; a failure to read them is no failure of its own', async () => {
    const ask = (onNamed?: (frames: readonly string[]) => Promise<[string, string][]>): Promise<string> =>
      runner()
        .analyse(
          { paths: ['asks for files'], partial: [], options: OPTIONS, source: null },
          { signal: new AbortController().signal, ...(onNamed ? { onNamed } : {}) },
        )
        .then(
          () => 'a report',
          (error: Error) => error.message,
        );
    expect(await ask(async (frames) => [['a.py', frames.join()]])).toBe('the analysis failed: [["a.py","/w/a.py"]]');
    expect(await ask(() => Promise.reject(new Error('rate limit')))).toBe('the analysis failed: []');
  });

  it.each(['dies', 'aborts'])('that %s is an error of ours, not of the upload', async (how) => {
    const error = await fails(how);
    expect(error.name).not.toBe('AdviseError');
    expect(error.message).toMatch(/^the analysis process ended with (3|SIGABRT|134)/);
    await expectGone();
  });

  it('is ended when the server stops', async () => {
    const controller = new AbortController();
    const failed = fails('waits', { signal: controller.signal });
    await expect.poll(() => existsSync(join(scratch, 'pid')), { timeout: 20_000 }).toBe(true);
    controller.abort(new Error('the server is stopping'));
    expect((await failed).message).toBe('the server is stopping');
    await expectGone();
  });

  it.each([
    ['writes elsewhere', /permission|Access to this API/i],
    ['starts a program', /permission|Access to this API/i],
  ])('that %s may not', async (how, words) => {
    expect((await fails(how)).message).toMatch(words);
    expect(existsSync(join(home, 'elsewhere'))).toBe(false);
  });

  it.each([
    ['a file beside its folder', () => join(scratch, '..', 'secret')],
    ['the environment of the server', () => `/proc/${process.pid}/environ`],
    ['its own memory', () => '/proc/self/environ'],
    ['the passwords of the machine', () => '/etc/passwd'],
    ['the settings of the operator', () => join(import.meta.dirname, '../../.env')],
  ])('that reads %s may not', async (_, path) => {
    writeFileSync(join(home, 'secret'), 'a secret');
    const request = { paths: ['reads elsewhere'], partial: [], baseline: [], options: OPTIONS, source: null };
    // Not among what it is given: the analyser is told by the message of a stack.
    const failed = runner().analyse(request, { signal: new AbortController().signal, onNamed: async () => [[path(), '']] });
    await expect(failed).rejects.toThrow(/permission|Access to this API/i);
  });

  it('that runs beside another reads and writes in its own folder only', async () => {
    const files = ['mine', 'theirs'].map((name) => join(scratch, name, 'profile'));
    for (const file of files) {
      mkdirSync(dirname(file));
      writeFileSync(file, 'a profile');
    }
    const request = { paths: ['reads elsewhere'], partial: [], baseline: [{ label: '', path: files[0]! }], options: OPTIONS, source: null };
    const read = (path: string) => runner().analyse(request, { signal: new AbortController().signal, onNamed: async () => [[path, '']] });
    await expect(read(files[0]!)).rejects.toThrow('read: a profile');
    await expect(read(files[1]!)).rejects.toThrow(/permission|Access to this API/i);
    expect(existsSync(join(scratch, 'mine', 'pid'))).toBe(true);
  });

  it('may read what it is given, wherever it lies', async () => {
    const given = join(home, 'given');
    writeFileSync(given, 'a profile');
    expect((await fails('reads elsewhere', { given: [given] })).message).toContain('read: a profile');
  });

  it('knows no secret, no token and no address', async () => {
    process.env.WEBHOOK_SECRET = 'a-secret-of-the-server';
    try {
      const { message } = await fails('says what it knows');
      const known = JSON.parse(message.slice(message.indexOf('{'))) as { env: string[]; request: object };
      expect(
        known.env.filter((name) => !['NODE_ENV', 'PATH', 'TMPDIR', 'NODE_CHANNEL_FD', 'NODE_CHANNEL_SERIALIZATION_MODE'].includes(name)),
      ).toEqual([]);
      expect(message).not.toMatch(/https?:|sig=|ghs_/);
    } finally {
      delete process.env.WEBHOOK_SECRET;
    }
  });
});

describe('reading directories', () => {
  it('is answered for each by itself', async () => {
    const answers = await runner().parts([join(home, 'absent.zip')], { signal: new AbortController().signal });
    expect(answers).toEqual([
      {
        ok: false,
        code: 'bad-zip',
        told: {
          en: { message: expect.stringContaining('absent.zip cannot be used'), hint: expect.any(String) },
          zh: { message: expect.stringContaining('absent.zip 无法使用'), hint: expect.any(String) },
        },
      },
    ]);
  });
});
