import { describe, expect, it } from 'vitest';
import type { Dependencies } from '../../src/app/jobs/dependencies.ts';
import type { Analysis } from '../../src/app/jobs/make-report.ts';
import { unlessOvertaken } from '../../src/app/jobs/overtaken.ts';
import { createLogger } from '../../src/github/log.ts';

const target = { installationId: 9, repository: { id: 7, owner: 'acme', name: 'train' } };
const analysis = {
  target,
  pr: 3,
  headSha: 'old',
  isAsked: false,
  mayReuse: false,
  isRetry: false,
  run: null,
  wanted: null,
} satisfies Analysis;

/** A pull request whose head is `head` on GitHub, and of which the store holds a request for `asked`. */
function world(asked: string, head: string, state = 'open') {
  const payload = { kind: 'analyse', ...target, pr: 3, headSha: asked, run: null, isAsked: false, commentId: null };
  const repo = { id: 7, html_url: 'https://x' };
  const data = { number: 3, state, user: { login: 'a' }, head: { sha: head, ref: 'b', repo }, base: { sha: 'c', ref: 'main', repo } };
  const stop = new AbortController();
  let looks = 0;
  const deps = {
    store: { requests: { pending: async () => [{ id: 1, payload }] } },
    github: {
      client: async () => {
        looks++;
        return { rest: { pulls: { get: async () => ({ data }) } } };
      },
    },
    log: createLogger('silent'),
    options: { isTest: true },
    signal: stop.signal,
  } as unknown as Dependencies;
  return { deps, stop, looks: () => looks };
}

/** Works until it is stopped, at most so long. */
async function run(deps: Dependencies, ms: number): Promise<string[]> {
  const tries: string[] = [];
  await unlessOvertaken(deps, analysis, async ({ signal, isOvertaken }) => {
    tries.push(isOvertaken === undefined ? 'again' : 'first');
    if (isOvertaken === undefined) return;
    await new Promise<void>((resolve, reject) => {
      setTimeout(resolve, ms);
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  });
  return tries;
}

describe('an analysis under way', () => {
  it('stops when the pull request has a newer commit, and is done again to find that out', async () => {
    expect(await run(world('new', 'new').deps, 20_000)).toEqual(['first', 'again']);
  });

  it('stops when the pull request is closed', async () => {
    expect(await run(world('new', 'old', 'closed').deps, 20_000)).toEqual(['first', 'again']);
  });

  it('goes on when another commit is asked for and the head is still its own, and looks once', async () => {
    const { deps, looks } = world('older', 'old');
    expect(await run(deps, 700)).toEqual(['first']);
    expect(looks()).toBe(1);
  });

  it('asks GitHub for nothing while nobody asks for another commit', async () => {
    const { deps, looks } = world('old', 'new');
    expect(await run(deps, 500)).toEqual(['first']);
    expect(looks()).toBe(0);
  });

  it('ends with the process, without another try', async () => {
    const { deps, stop } = world('old', 'old');
    setTimeout(() => stop.abort(new Error('the server is stopping')), 50);
    await expect(run(deps, 20_000)).rejects.toThrow('the server is stopping');
  });
});
