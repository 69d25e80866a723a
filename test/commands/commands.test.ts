import { describe, expect, it } from 'vitest';
import type { CommandClient, Wanted } from '../../src/commands/command.ts';
import { executeCommands } from '../../src/commands/execute.ts';
import { renderHelp } from '../../src/commands/help.ts';
import { MAX_COMMANDS, parseCommands } from '../../src/commands/parse.ts';
import { COMMANDS } from '../../src/commands/table.ts';

describe('finding commands in a comment', () => {
  const names = (body: string) => parseCommands(body).map((line) => [line.name, ...line.args].join(' '));

  it.each([
    ['a command alone', '/npu-advise run', ['run']],
    ['nothing after the token', '/npu-advise', ['run']],
    ['arguments', '/npu-advise run 3f2a91c', ['run 3f2a91c']],
    ['text around it', 'please\n/npu-advise help\nthanks', ['help']],
    ['Windows line ends', '/npu-advise help\r\n/npu-advise status\r\n', ['help', 'status']],
    ['capital letters in the sub-command', '/npu-advise HELP', ['help']],
  ])('reads %s', (_, body, expected) => {
    expect(names(body)).toEqual(expected);
  });

  it.each([
    ['inside a line', 'use /npu-advise run'],
    ['indented', '    /npu-advise run'],
    ['another token', '/npu-advisee run'],
    ['another case of the token', '/NPU-advise run'],
    ['in a code fence', '```\n/npu-advise run\n```'],
    ['in a fence closed by a shorter one', '````\n```\n/npu-advise run\n````'],
    ['in a tilde fence with a language', '~~~sh\n/npu-advise run\n~~~'],
    ['in an unclosed fence', '```sh\n/npu-advise run'],
    ['in a quote', '> /npu-advise run'],
    ['in the lazy rest of a quote', '> text\n/npu-advise run'],
    ['in an HTML comment', '<!--\n/npu-advise run\n-->'],
    ['in an unclosed HTML comment', '<!-- \n/npu-advise run'],
    ['right behind an HTML comment', 'x <!-- a\n-->/npu-advise run'],
    ['in a huge comment beyond the limit', `${'x\n'.repeat(40_000)}/npu-advise run`],
  ])('ignores one %s', (_, body) => {
    expect(names(body)).toEqual([]);
  });

  it('resumes after a fence, a quote and a comment', () => {
    expect(names('```\nx\n```\n/npu-advise help')).toEqual(['help']);
    expect(names('> quoted\n\n/npu-advise help')).toEqual(['help']);
    expect(names('<!-- x -->\n/npu-advise help')).toEqual(['help']);
    expect(names('``` inline `` ```\n/npu-advise help')).toEqual(['help']);
  });

  it('reads a bounded number', () => {
    expect(names('/npu-advise help\n'.repeat(100))).toHaveLength(MAX_COMMANDS);
  });
});

const RUN = 17_384_930_219;

function world(over: { actor?: string; permission?: 'admin' | 'write' | 'read' | 'none'; lang?: 'en' | 'zh' } = {}) {
  const replies: string[] = [];
  const analysed: string[] = [];
  const wanted: (Wanted | null)[] = [];
  let asked = 0;
  const client: CommandClient = {
    reply: async (text) => void replies.push(text),
    requestAnalysis: async (sha, upload) => {
      if (
        upload !== null &&
        upload.runId !== RUN &&
        !(upload.artifact !== null && 'name' in upload.artifact && upload.artifact.name === 'my profile')
      ) {
        return { en: 'There is no such upload; the head is `3f2a91c`', zh: '没有该上传' };
      }
      analysed.push(sha);
      wanted.push(upload);
      return null;
    },
    status: async () => ({
      check: { phase: 'completed', conclusion: 'neutral' },
      verdict: 'all quiet',
      pending: 0,
      deadlineAt: null,
      patterns: ['npu-profile*'],
      runs: [{ name: 'perf', completed: true, matching: 0, uploaded: 2, ignoredBecause: null }],
    }),
  };
  const run = (body: string) =>
    executeCommands({
      lines: parseCommands(body),
      lang: over.lang ?? 'en',
      actor: over.actor ?? 'author',
      author: 'Author',
      headSha: '3f2a91c'.padEnd(40, '0'),
      clientFor: () => client,
      permission: async () => {
        asked++;
        return over.permission ?? 'read';
      },
    });
  return { run, replies, analysed, wanted, asked: () => asked };
}

describe('running commands', () => {
  it('lets the author ask for an analysis without asking for rights', async () => {
    const { run, analysed, asked } = world();
    expect(await run('/npu-advise rerun')).toBe('started');
    expect(analysed).toEqual(['3f2a91c'.padEnd(40, '0')]);
    expect(asked()).toBe(0);
  });

  it.each([
    ['write', 1],
    ['admin', 1],
    ['read', 0],
    ['none', 0],
  ] as const)('lets somebody else with %s start %i analyses', async (permission, count) => {
    const { run, analysed, replies } = world({ actor: 'other', permission });
    expect(await run('/npu-advise run')).toBe(count === 1 ? 'started' : 'refused');
    expect(analysed).toHaveLength(count);
    expect(replies).toHaveLength(1 - count);
  });

  it('binds run to a commit when one is named', async () => {
    const { run, analysed, replies } = world();
    expect(await run('/npu-advise run 3f2a91c')).toBe('started');
    expect(await run('/npu-advise run 1234567')).toBe('refused');
    expect(await run('/npu-advise run ; rm -rf')).toBe('refused');
    expect(analysed).toHaveLength(1);
    expect(replies[0]).toContain('`3f2a91c`');
  });

  it.each<[string, Partial<Wanted> | null]>([
    ['17384930219', { runId: RUN, artifact: null }],
    ['https://github.com/acme/train/actions/runs/17384930219', { runId: RUN, repository: 'acme/train', artifact: null }],
    ['https://github.com/acme/train/actions/runs/17384930219/job/5?pr=7', { runId: RUN, artifact: null }],
    ['https://ghe.corp/acme/train/actions/runs/17384930219/artifacts/99', { runId: RUN, artifact: { id: 99 } }],
    ['https://github.com/acme/train/actions/runs/17384930219/attempts/2/artifacts/99', { runId: RUN, artifact: { id: 99 } }],
    ['my profile', { runId: null, repository: null, artifact: { name: 'my profile' } }],
    ['3f2a91c', null],
    ['3F2A91C0', null],
  ])('run %s points at one upload', async (words, expected) => {
    const { run, wanted } = world();
    expect(await run(`/npu-advise run ${words}`)).toBe('started');
    expect(wanted).toEqual([expected === null ? null : expect.objectContaining(expected)]);
  });

  it.each([
    ['a run that is not there', '4711'],
    ['an artifact that is not there', 'npu-profile'],
    ['the name of no artifact', 'a/b'],
    ['a pattern', 'npu-*'],
    ['an address of something else', 'https://github.com/acme/train/pull/7'],
    ['a very long name', 'x'.repeat(240)],
  ])('run with %s starts nothing and says why', async (_, words) => {
    const { run, analysed, replies } = world();
    expect(await run(`/npu-advise run ${words}`)).toBe('refused');
    expect(analysed).toEqual([]);
    expect(replies).toHaveLength(1);
  });

  it('answers help and status to anyone', async () => {
    const { run, replies } = world({ actor: 'stranger', permission: 'none' });
    expect(await run('/npu-advise help\n/npu-advise status')).toBe('done');
    expect(replies[0]).toContain('/npu-advise run');
    expect(replies[1]).toContain('0 of 2 artifacts match');
  });

  it('answers an unknown command with the help, once, and the nearest name', async () => {
    const { run, replies } = world();
    expect(await run('/npu-advise statsu\n/npu-advise nonsense')).toBe('refused');
    expect(replies).toHaveLength(1);
    expect(replies[0]).toContain('`statsu`');
    expect(replies[0]).toContain('`status`');
  });

  it('does the same thing once', async () => {
    const { run, analysed } = world();
    await run('/npu-advise run\n/npu-advise rerun');
    expect(analysed).toHaveLength(1);
  });

  it('speaks Chinese', async () => {
    const { run, replies } = world({ lang: 'zh', actor: 'x', permission: 'read' });
    await run('/npu-advise run\n/npu-advise status');
    expect(replies.join('\n')).toContain('写权限');
    expect(replies.join('\n')).toContain('个匹配');
  });
});

describe('the command table', () => {
  it('gives every command a usage, examples that parse, and texts in both languages', () => {
    for (const command of COMMANDS) {
      expect(command.usage.startsWith(`/npu-advise ${command.name}`)).toBe(true);
      for (const example of command.examples) {
        const [line] = parseCommands(example);
        expect([command.name, ...command.aliases]).toContain(line?.name);
        expect(command.parse(line?.args ?? ['?']).ok).toBe(true);
      }
      for (const lang of ['en', 'zh'] as const) expect(renderHelp(COMMANDS, lang)).toContain(command.description[lang]);
    }
  });
});
