import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { AdviseError } from '../../base/errors.ts';
import type { RepositoryRef } from '../../github/client.ts';
import { type RunRef, toRun } from '../../github/pull-requests.ts';

const Repo = z.object({ id: z.number(), html_url: z.string() });
const Pull = z.object({
  number: z.number().int().positive(),
  head: z.object({ sha: z.string(), repo: Repo.nullable() }),
  base: z.object({ ref: z.string(), repo: Repo }),
});
const Run = z.object({
  id: z.number().int().positive(),
  run_attempt: z.number().default(1),
  name: z.string().nullable().default(null),
  path: z.string().default(''),
  event: z.string(),
  html_url: z.string(),
  head_sha: z.string(),
  head_branch: z.string().nullable(),
  head_repository: z.object({ id: z.number(), owner: z.object({ login: z.string() }).nullable() }).nullable(),
});
const Event = z.object({
  pull_request: Pull.optional(),
  workflow_run: Run.optional(),
  repository: z.object({ default_branch: z.string().optional() }).optional(),
});

/** Where a run of the action happens, by what the runner says of it. */
export interface Place {
  readonly repository: RepositoryRef;
  readonly apiUrl: string;
  readonly serverUrl: string;
  /** This run. */
  readonly runId: number;
  readonly runUrl: string;
  /** Commit the profile belongs to. */
  readonly headSha: string;
  /** Pull request of the event itself. */
  readonly pull: {
    readonly number: number;
    readonly baseRef: string;
    readonly headHtmlUrl: string | null;
    readonly fromFork: boolean;
  } | null;
  /** The finished run that this one was started by. */
  readonly trigger: RunRef | null;
  readonly defaultBranch: string | null;
  readonly temp: string;
}

/** Reads what GitHub's runner says about the event. Nothing in it was written by the profile. */
export function readPlace(env: Readonly<Record<string, string | undefined>>): Place {
  const need = (name: string): string => {
    const value = env[name];
    if (value === undefined || value === '')
      throw new AdviseError(
        'not-a-runner',
        { en: `${name} is not set`, zh: `没有设置 ${name}` },
        {
          en: 'This command runs as a step of a GitHub workflow; elsewhere use npu-advise analyze.',
          zh: '该命令作为 GitHub 工作流的一个步骤运行；其他场合使用 npu-advise analyze。',
        },
      );
    return value;
  };
  const [owner = '', name = ''] = need('GITHUB_REPOSITORY').split('/', 2);
  const event = Event.parse(JSON.parse(readFileSync(need('GITHUB_EVENT_PATH'), 'utf8')));
  const { pull_request: pull, workflow_run: run } = event;
  const serverUrl = (env.GITHUB_SERVER_URL ?? 'https://github.com').replace(/\/+$/, '');
  const runId = Number(need('GITHUB_RUN_ID'));
  return {
    repository: { id: Number(env.GITHUB_REPOSITORY_ID ?? 0), owner, name },
    apiUrl: (env.GITHUB_API_URL ?? 'https://api.github.com').replace(/\/+$/, ''),
    serverUrl,
    runId,
    runUrl: `${serverUrl}/${owner}/${name}/actions/runs/${runId}`,
    headSha: pull?.head.sha ?? run?.head_sha ?? need('GITHUB_SHA'),
    pull:
      pull === undefined
        ? null
        : {
            number: pull.number,
            baseRef: pull.base.ref,
            headHtmlUrl: pull.head.repo?.html_url ?? null,
            fromFork: pull.head.repo?.id !== pull.base.repo.id,
          },
    trigger: run === undefined ? null : toRun(run),
    defaultBranch: event.repository?.default_branch ?? null,
    temp: need('RUNNER_TEMP'),
  };
}
