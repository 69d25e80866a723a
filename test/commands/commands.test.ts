import { describe, expect, it } from 'vitest';
import type { CommandClient, CommandResult, Wanted } from '../../src/commands/command.ts';
import { executeCommands } from '../../src/commands/execute.ts';
import { renderHelp } from '../../src/commands/help.ts';
import { MAX_COMMANDS, parseCommands } from '../../src/commands/parse.ts';
import { COMMANDS } from '../../src/commands/table.ts';
import type { ShownFinding } from '../../src/model/acknowledgement.ts';
import type { L10n } from '../../src/model/lang.ts';

describe('finding commands in a comment', () => {
  const names = (body: string) => parseCommands(body).map((line) => [line.name, ...line.args].join(' '));

  it.each([
    ['a command alone', '/npu-advise run', ['run']],
    ['nothing after the token', '/npu-advise', ['run']],
    ['arguments', '/npu-advise run 3f2a91c', ['run 3f2a91c']],
    ['text around it', 'please\n/npu-advise help\nthanks', ['help']],
    ['Windows line ends', '/npu-advise help\r\n/npu-advise status\r\n', ['help', 'status']],
    ['capital letters in the sub-command', '/npu-advise HELP', ['help']],
    ['full-width signs, letters and spaces', '／ｎｐｕ－ａｄｖｉｓｅ　ｈｅｌｐ', ['help']],
    ['a full-width space and digit', '/npu-advise　run　１２３', ['run 123']],
    ['a no-break space', '/npu-advise\u00a0help', ['help']],
    ['an invisible mark before it', '\ufeff/npu-advise help', ['help']],
    ['a reason as it is written', '/npu-advise ack 1 （已知）：ＧＣ 问题！', ['ack 1 （已知）：ＧＣ 问题！']],
    ['several, with text between', '/npu-advise help\n\nand\n/npu-advise status\n', ['help', 'status']],
    ['one after a fence right behind a quote', '> q\n```\nx\n```\n/npu-advise help', ['help']],
    ['one beside a lone backtick', 'it`s slow\n/npu-advise help', ['help']],
    ['one with a comment behind it', '/npu-advise run 3f2a91c <!-- because -->', ['run 3f2a91c']],
    ['one with a comment of two lines behind it', '/npu-advise run <!-- because\nof this --> x', ['run']],
    ['one after a comment that holds a fence', '<!--\n```\n-->\n/npu-advise help', ['help']],
    ['one after a comment in a quote', '> <!-- x\n> y -->\n\n/npu-advise help', ['help']],
    ['one after the sign of a comment in code', 'see `<!--`\n\n/npu-advise help', ['help']],
    ['one after the sign of a comment in a fence', '```\n<!--\n```\n/npu-advise help', ['help']],
    ['one between signs of a comment in code', '`<!--`\n/npu-advise help\n`-->`', ['help']],
    ['one after a block of raw HTML', '<pre>\nx\n</pre>\n/npu-advise help', ['help']],
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
    ['in inline code', '`/npu-advise run`'],
    ['in inline code over several lines', 'use `\n/npu-advise run\n` here'],
    ['in inline code with two backticks', '`` `\n/npu-advise run\n``'],
    ['in a block of raw HTML', '<pre>\n/npu-advise run\n</pre>'],
    ['in an unclosed script', '<script>\n/npu-advise run'],
    ['in a fence after the sign of a comment in code', 'see `<!--`\n```\n-->\n/npu-advise run\n```'],
    ['in a fence that holds the signs of a comment', '```\n<!--\n```\n```\n-->\n/npu-advise run\n```'],
    ['in a fence that ends a paragraph with an unclosed comment', 'x <!-- a\n```\n-->\n/npu-advise run\n```'],
    ['behind a comment that a quote leaves open', '> <!--\n```\n-->\n/npu-advise run\n```\n/npu-advise run'],
    ['behind a comment that a list leaves open', '- <!--\n\n/npu-advise run'],
    ['behind a comment that a block of HTML leaves open', '<div> `<!--`\n\n/npu-advise run'],
    ['behind a comment that raw HTML leaves open', '<pre><!--</pre>\n/npu-advise run'],
    ['in code that a comment seems to begin in', 'x <!-- -- ` -->\n/npu-advise run\n`'],
    ['in a list', '- /npu-advise run'],
    ['with something glued to it', '/npu-advise，run'],
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

  it('reads a very long comment of backticks quickly', () => {
    const started = performance.now();
    names(`${Array.from({ length: 300 }, (_, i) => '`'.repeat((i % 200) + 1)).join('x')}\n/npu-advise help\n`.repeat(3));
    names('`\n/npu-advise help\n'.repeat(3000));
    names('<!-- ` --> `` '.repeat(4000));
    names('<!--'.repeat(17_000));
    names('/npu-advise help <!-- x -->\n'.repeat(2000));
    names(`/npu-advise ack 1 ${'\ud83d '.repeat(30_000)}`);
    expect(performance.now() - started).toBeLessThan(1000);
  });

  it('reads a bounded number', () => {
    expect(names('/npu-advise help\n'.repeat(100))).toHaveLength(MAX_COMMANDS);
  });
});

const RUN = 17_384_930_219;

interface Over {
  actor?: string;
  permission?: 'admin' | 'write' | 'read' | 'none';
  lang?: 'en' | 'zh';
  shown?: readonly ShownFinding[] | null;
  acknowledged?: readonly string[];
  ended?: readonly [number, CommandResult][];
  moved?: L10n;
}

function shownFinding(id: string, number: number | null, over: Partial<ShownFinding> = {}): ShownFinding {
  const rule = id.replace(/-[0-9a-f]{8}(\..*)?$/, '');
  return { id, rule, number, title: `About ${id}`, saving: { likely: 9, ceiling: 12 }, state: 'open', change: null, ...over };
}

const SHOWN: readonly ShownFinding[] = [
  shownFinding('dataloader-stall-11111111', 1),
  shownFinding('slow-rank-22222222', 2),
  shownFinding('slow-rank-33333333', 3, { state: 'muted' }),
  shownFinding('hccl-sync-wait-44444444', 4, { state: 'part' }),
  shownFinding('regression-55555555', 5),
  shownFinding('regression', null),
];

/** What the commands about findings ask for, told through the replies as `name: …`. */
function standing(
  { shown = SHOWN, acknowledged = [], moved }: Over,
  told: string[],
): Omit<CommandClient, 'reply' | 'requestAnalysis' | 'status'> {
  return {
    shown: async () => shown,
    shownSince: async () => moved ?? null,
    acknowledgements: async () =>
      acknowledged.map((finding) => ({ finding, rule: 'r', title: 't', by: 'b', at: 0, sha: 's', until: null, reason: '', saving: null })),
    acknowledge: async (findings, { reason, until }) => void told.push(`ack ${findings.map(({ id }) => id).join()}|${reason}|${until}`),
    takeBack: async (findings) => void told.push(`unack ${findings.join()}`),
    reportOf: async () => null,
    rules: () => ['dataloader-stall', 'slow-rank'],
    rule: async () => null,
    suggest: async () => ({ en: 'Nothing to suggest', zh: '没有可提交的修改' }),
    compare: async (_, ref, job) => ({ problem: { en: `No profile of ${ref} ${job}`, zh: '没有' } }),
    settings: async () => ({ en: 'The settings cannot be used', zh: '配置无效' }),
  };
}

function world(over: Over = {}) {
  const replies: string[] = [];
  const analysed: string[] = [];
  const ended: [number, CommandResult][] = [];
  const wanted: (Wanted | null)[] = [];
  let asked = 0;
  const client: CommandClient = {
    ...standing(over, replies),
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
      acknowledged: [],
    }),
  };
  const run = (body: string) =>
    executeCommands({
      lines: parseCommands(body),
      lang: over.lang ?? 'en',
      actor: over.actor ?? 'author',
      author: 'Author',
      headSha: '3f2a91c'.padEnd(40, '0'),
      today: '2026-11-30',
      ended: new Map(over.ended ?? []),
      onEnded: async (place, result) => void ended.push([place, result]),
      clientFor: () => client,
      permission: async () => {
        asked++;
        return over.permission ?? 'read';
      },
    });
  return { run, replies, analysed, wanted, ended, asked: () => asked };
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

describe('acknowledging', () => {
  const as = (over: Over = {}) => world({ actor: 'm', permission: 'write', ...over });

  it.each([
    ['1', 'dataloader-stall-11111111||null'],
    ['#1', 'dataloader-stall-11111111||null'],
    ['dataloader-stall', 'dataloader-stall-11111111||null'],
    ['DataLoader-Stall-1111', 'dataloader-stall-11111111||null'],
    ['1,2', 'dataloader-stall-11111111,slow-rank-22222222||null'],
    ['1、2 都已知道', 'dataloader-stall-11111111,slow-rank-22222222|都已知道|null'],
    ['1 2', 'dataloader-stall-11111111,slow-rank-22222222||null'],
    ['1 2 cards are swapped', 'dataloader-stall-11111111|2 cards are swapped|null'],
    ['１，原因 很多', 'dataloader-stall-11111111|原因 很多|null'],
    ['1 card is replaced until 2027-01-31', 'dataloader-stall-11111111|card is replaced|2027-01-31'],
    ['1 until 2027/1/5', 'dataloader-stall-11111111||2027-01-05'],
    ['1 已安排换卡 至2027年1月31日', 'dataloader-stall-11111111|已安排换卡|2027-01-31'],
    ['1 已安排换卡　直到　２０２７－０１－３１', 'dataloader-stall-11111111|已安排换卡|2027-01-31'],
    ['1 wait until next release', 'dataloader-stall-11111111|wait until next release|null'],
    ['regression known', 'regression|known|null'],
    ['all', 'dataloader-stall-11111111,slow-rank-22222222,regression-55555555,regression||null'],
  ])('%s', async (words, expected) => {
    const { run, replies } = as();
    expect(await run(`/npu-advise ack ${words}`)).toBe('started');
    expect(replies).toEqual([`ack ${expected}`]);
  });

  it.each([
    ['', /Say which finding/],
    ['9', /no finding 9; shown are 1 = `dataloader-stall-11111111`/],
    ['slow-rank', /names several: 2 = `slow-rank-22222222`, 3 = `slow-rank-33333333`/],
    ['datloader-stall', /did you mean `dataloader-stall`\?$/],
    ['3', /muted by the settings already/],
    ['4', /part of another cause; acknowledge that one \(open: 1, 2, 5\)/],
    ['1 until tomorrow', /takes a day such as/],
    ['1 until 2027-02-31', /takes a day such as/],
    ['1 until 2026-11-29', /`2026-11-29` has passed/],
    ['1 until 2028-11-30', /a year at most/],
    ['@everyone', /Say which finding/],
  ])('%j is refused with a reason', async (words, reason) => {
    const { run, replies } = as();
    expect(await run(`/npu-advise ack ${words}`)).toBe('refused');
    expect(replies).toEqual([expect.stringMatching(reason)]);
  });

  it('that has ended in an earlier try is not done again: its number means another finding by now', async () => {
    const first = as();
    await first.run('/npu-advise ack 1\n/npu-advise ack 9\n/npu-advise unack 2');
    expect(first.ended).toEqual([
      [0, 'started'],
      [1, 'refused'],
      [2, 'refused'],
    ]);
    const again = as({ ended: [[0, 'started']] });
    expect(await again.run('/npu-advise ack 1\n/npu-advise ack 2')).toBe('started');
    expect(again.replies).toEqual(['ack slow-rank-22222222||null']);
  });

  it('is not for the author without the right to write', async () => {
    const { run, replies } = world({ permission: 'read' });
    expect(await run('/npu-advise ack 1')).toBe('refused');
    expect(replies[0]).toContain('people who may write');
    expect(await world({ permission: 'read', lang: 'zh' }).run('/npu-advise config')).toBe('refused');
  });

  it('is taken back by number, id or all, also of what is gone', async () => {
    const { run, replies } = as({ acknowledged: ['dataloader-stall-11111111', 'gone-1'] });
    expect(await run('/npu-advise unack 1\n/npu-advise unack gone-1\n/npu-advise unack all')).toBe('started');
    expect(await run('/npu-advise unack 2\n/npu-advise unack 3\n/npu-advise unack 1 because')).toBe('refused');
    expect(replies).toEqual([
      'unack dataloader-stall-11111111',
      'unack gone-1',
      'unack dataloader-stall-11111111,gone-1',
      'That is not acknowledged.',
      'It is muted by the settings, not acknowledged.',
      expect.stringContaining('takes a finding or `all`'),
    ]);
  });

  it('by number or `all` is refused once something else is shown; by id or rule it is not, nor is taking everything back', async () => {
    const { run, replies } = as({ moved: { en: 'It has changed', zh: '已更新' }, acknowledged: ['dataloader-stall-11111111'] });
    expect(await run('/npu-advise ack #1\n/npu-advise ack slow-rank-2,2\n/npu-advise ack ALL\n/npu-advise unack １')).toBe('refused');
    expect(replies).toEqual(Array(4).fill('It has changed.'));
    expect(await run('/npu-advise ack dataloader-stall\n/npu-advise unack all')).toBe('started');
    expect(replies.slice(4)).toEqual(['ack dataloader-stall-11111111||null', 'unack dataloader-stall-11111111']);
  });

  it('before there is a report is refused, in Chinese', async () => {
    const { run, replies } = as({ shown: null, lang: 'zh' });
    expect(await run('/npu-advise ack 1\n/npu-advise suggest\n/npu-advise config')).toBe('refused');
    expect(replies).toEqual(['本 PR 尚无报告。', '没有可提交的修改。', '配置无效。']);
  });
});

describe('comparing', () => {
  it.each([
    ['', 'No profile of null null.'],
    ['release/2.1', 'No profile of release/2.1 null.'],
    ['3f2a91c pretrain', 'No profile of 3f2a91c pretrain.'],
    ['../../etc', /takes one branch/],
    ['main@{1}', /takes one branch/],
    ['a b c', /takes one branch/],
    ['-x', /takes one branch/],
  ])('%j', async (words, said) => {
    const { run, replies } = world();
    expect(await run(`/npu-advise compare ${words}`)).toBe('refused');
    expect(replies).toEqual([typeof said === 'string' ? said : expect.stringMatching(said)]);
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
    const rows = renderHelp(COMMANDS, 'en')
      .split('\n')
      .filter((line) => line.startsWith('| `'));
    expect(rows).toHaveLength(COMMANDS.length);
    for (const row of rows) expect(row.match(/(?<!\\)\|/g)).toHaveLength(4);
  });
});
