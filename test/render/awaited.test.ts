import { describe, expect, it } from 'vitest';
import { type AwaitedJob, renderAwaited, withAwaitedNote } from '../../src/render/awaited.ts';

const SHA = 'a'.repeat(40);
const run = (name: string) => ({ name, url: null });
const job = (state: AwaitedJob['state'], over: Partial<AwaitedJob> = {}): AwaitedJob => ({
  name: null,
  state,
  runs: [],
  isNamed: false,
  ...over,
});

describe('what is awaited', () => {
  it.each([
    ['started', true, 'The profile run is underway: train.', true],
    ['started', false, 'A workflow run is underway: train. When it has ended, the profile it uploads is read.', true],
    ['queued', true, 'Waiting for a runner: train. The comment follows when a profile is uploaded.', false],
  ] as const)('of one job, %s, workflows named: %s', (state, isNamed, summary, isUnderway) => {
    expect(renderAwaited([job(state, { isNamed, runs: [run('train')] })], SHA, 'en')).toMatchObject({ summary, isUnderway });
  });

  it('is not more than before where no run is there', () => {
    for (const state of ['none', 'missed', 'arrived'] as const) expect(renderAwaited([job(state)], SHA, 'en')).toBeNull();
    expect(renderAwaited([], SHA, 'en')).toBeNull();
  });

  const several = [
    job('arrived', { name: 'bert', runs: [run('x')] }),
    job('started', { name: 'gpt', runs: [run('@team'), ...Array.from({ length: 9 }, (_, i) => run(`r${i}`))] }),
    job('none', { name: 'vision' }),
  ];
  it.each([
    [
      'en',
      '1 of 3 profiles of aaaaaaa have arrived',
      '- `vision`: awaited, no run yet',
      '; arrived: `bert`; figures above are from `bbbbbbb`',
    ],
    ['zh', 'aaaaaaa 的 3 份 profile 中已收到 1 份', '- `vision`：等待中，尚无运行', '；已收到：`bert`；以上数据来自 `bbbbbbb`'],
  ] as const)('of several jobs is told of each, in %s', (lang, title, line, note) => {
    const said = renderAwaited(several, SHA, lang)!;
    expect(said).toMatchObject({ title, isUnderway: true });
    expect(said.summary).toContain(line);
    expect(said.summary).not.toContain('@team');
    expect(said.summary).toContain('…');
    const once = withAwaitedNote('<!-- x -->\nfigures\n', several, 'b'.repeat(40), SHA, lang);
    expect(once).toContain(note);
    expect(withAwaitedNote(once, several, 'b'.repeat(40), SHA, lang)).toBe(once);
    expect(withAwaitedNote(once, several.slice(0, 1), 'b'.repeat(40), SHA, lang)).not.toContain('vision');
  });
});
