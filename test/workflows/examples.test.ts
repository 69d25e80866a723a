import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { validateAction, validateWorkflow } from '@action-validator/core';
import { describe, expect, it, test, vi } from 'vitest';
import { parse } from 'yaml';
import { INPUTS } from '../../src/app/action/inputs.ts';
import { parsePython } from '../../src/source/python-parser.ts';

// It says of every `paths` that it does not check patterns.
vi.spyOn(console, 'warn').mockImplementation(() => undefined);

const ROOT = join(import.meta.dirname, '../..');
const FOLDER = join(ROOT, 'examples/workflows');
const FILES = readdirSync(FOLDER).filter((file) => file.endsWith('.yml'));
const OURS = 'OWNER/npu-advisor@COMMIT';

interface Step {
  uses?: string;
  run?: string;
  with?: Record<string, unknown>;
}
interface Job {
  if?: string;
  steps: Step[];
  permissions?: Record<string, string>;
}
interface Workflow {
  on: Record<string, unknown>;
  permissions?: Record<string, string>;
  jobs: Record<string, Job>;
}

function bash(script: string): void {
  execFileSync('bash', ['-n'], { input: script, stdio: ['pipe', 'ignore', 'pipe'] });
}

describe.each(FILES)('examples/workflows/%s', (file) => {
  const text = readFileSync(join(FOLDER, file), 'utf8');
  const workflow = parse(text) as Workflow;
  const jobs = Object.values(workflow.jobs);
  const steps = jobs.flatMap((job) => job.steps);

  it('is a workflow by its JSON schema', () => {
    expect(validateWorkflow(text).errors).toEqual([]);
  });

  it('pins every action to a commit and says of which version it is', () => {
    for (const { uses } of steps) {
      if (uses === undefined || uses === OURS) continue;
      expect(uses).toMatch(/^[\w.-]+\/[\w./-]+@[0-9a-f]{40}$/);
      expect(text).toMatch(new RegExp(`${uses} # v\\d+\\.\\d+\\.\\d+`));
    }
  });

  it('puts nothing of an event into the text of a command, which is valid', () => {
    for (const { run } of steps) {
      if (run === undefined) continue;
      expect(run).not.toContain('${{');
      bash(run);
    }
  });

  it('gives a run that executes the code of a pull request nothing to take', () => {
    expect(workflow.on).not.toHaveProperty('pull_request_target');
    expect(workflow.permissions).toBeDefined();
    expect(text).not.toMatch(/\$\{\{[^}]*\bsecrets\./);
    const isTrusted = 'workflow_run' in workflow.on;
    for (const job of jobs) {
      const writes = Object.values({ ...workflow.permissions, ...job.permissions }).includes('write');
      const isOwnOnly = job.if?.includes('head.repo.full_name == github.repository') ?? false;
      if (writes) expect([file, isTrusted || isOwnOnly]).toEqual([file, true]);
      if (isTrusted) expect(job.steps.every(({ uses, run }) => uses === OURS && run === undefined)).toBe(true);
    }
    for (const { uses, with: given } of steps)
      if (uses?.startsWith('actions/checkout@')) expect(given).toMatchObject({ 'persist-credentials': false });
  });

  it('profiles the head of a pull request, not its merge with the base branch of the day', () => {
    const isPullRequestOnly = Object.keys(workflow.on).join() === 'pull_request';
    const head = 'github.event.pull_request.head.sha';
    for (const { uses, with: given } of steps) {
      if (!('pull_request' in workflow.on) || uses?.startsWith('actions/checkout@') !== true) continue;
      expect(given?.ref).toBe(isPullRequestOnly ? `\${{ ${head} }}` : `\${{ ${head} || github.sha }}`);
    }
  });

  it('uses inputs that the action has, and uploads under names that are read', () => {
    for (const { uses, with: given = {} } of steps) {
      if (uses === OURS) expect(INPUTS.map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(given)));
      if (uses?.startsWith('actions/upload-artifact@')) expect(given.name).toMatch(/^(?:ascend-profile-|raw-capture-)/);
    }
  });
});

test('the action is one by its JSON schema, hands inputs over in variables only, and installs without scripts', () => {
  const text = readFileSync(join(ROOT, 'action.yml'), 'utf8');
  expect(validateAction(text).errors).toEqual([]);
  const action = parse(text) as { runs: { steps: (Step & { env?: Record<string, string> })[] } };
  for (const { uses, run } of action.runs.steps) {
    if (uses !== undefined) expect(uses).toMatch(/@[0-9a-f]{40}$/);
    if (run === undefined) continue;
    expect(run).not.toContain('${{');
    bash(run);
  }
  expect(action.runs.steps.map(({ run }) => run).join()).toContain('npm ci --omit=dev --ignore-scripts');
  expect(Object.keys(action.runs.steps.at(-1)?.env ?? {})).toHaveLength(INPUTS.length);
});

test('the validator can fail', () => {
  expect(validateWorkflow('on: push\njobs: { a: { runs-on: x, steps: [{ uses: a/b@c, wth: {} }] } }').errors).not.toEqual([]);
});

test('Python beside the workflows is Python', () => {
  for (const file of readdirSync(FOLDER).filter((name) => name.endsWith('.py'))) {
    expect(parsePython(file, readFileSync(join(FOLDER, file), 'utf8')).failure).toBeNull();
  }
});

test('links of the pages lead somewhere', () => {
  for (const page of ['docs/actions.md', 'docs/actions.zh.md', 'docs/config.md']) {
    const text = readFileSync(join(ROOT, page), 'utf8');
    for (const [, target = ''] of text.matchAll(/\]\((?!https?:)([^)#]+)/g))
      expect([page, target, existsSync(join(ROOT, dirname(page), target))]).toEqual([page, target, true]);
  }
});
