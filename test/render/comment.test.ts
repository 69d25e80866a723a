import { describe, expect, it } from 'vitest';
import { LANGS, type Lang } from '../../src/model/lang.ts';
import { commentMarker, publicPath, readCommentState, renderComment } from '../../src/render/comment.ts';
import type { CommentView } from '../../src/render/views.ts';
import { gfm } from './page.ts';
import {
  caseA,
  caseB,
  caseC,
  caseD,
  caseE,
  caseF,
  comparison,
  finding,
  LINKS,
  report,
  reportComment,
  SHA,
  threeCauses,
} from './reports.ts';

const NEXT = '7d01e5b2a4c6f8091a2b3c4d5e6f708192a3b4c5';

function bare(lang: Lang): Pick<CommentView, 'lang' | 'appSlug' | 'pr' | 'sha' | 'links'> {
  return { lang, appSlug: 'npu-advisor', pr: 42, sha: SHA, links: LINKS };
}

/** Every state a comment can be in. */
const CASES: Readonly<Record<string, (lang: Lang) => CommentView>> = {
  a: caseA,
  b: caseB,
  c: caseC,
  d: caseD,
  e: caseE,
  f: caseF,
  'gate-failed': (lang) => {
    const a = caseA(lang);
    const because =
      lang === 'en' ? ['causes cost 16\u00a0% of the step together; the limit is 10\u00a0%'] : ['各原因合计占迭代的 16%；上限为 10%'];
    return { ...a, report: { ...a.report, gate: { outcome: 'fail', because } } };
  },
  'faster-than-base': (lang) => {
    const c = caseC(lang);
    const text =
      lang === 'en' ? `Each step is 40.2\u00a0ms faster than in the baseline (−5.1\u00a0%).` : '每个迭代比基线快 40.2\u00a0ms（−5.1%）。';
    const fields = { verdict: 'improvement', text, stepTimeMs: 741, deltaMs: -40.2, deltaShare: -0.051, interval: [-49, -31] } as const;
    const baseline = { ...comparison(lang).baseline, stepTimeMs: 781.2 };
    const [loader] = comparison(lang).contributors;
    const contributors = [{ ...loader!, baseMs: 72.1, headMs: 31.9, deltaMs: -40.2 }];
    return {
      ...c,
      report: {
        ...c.report,
        comparison: { ...comparison(lang), ...fields, interval: [-49, -31], baseline, contributors, metrics: [], findings: [] },
      },
    };
  },
  'as-the-base': (lang) => {
    const c = caseC(lang);
    const text =
      lang === 'en'
        ? 'Step 741\u00a0ms, baseline 742\u00a0ms: −0.1\u00a0% is within noise; a change below 22\u00a0ms is not called one.'
        : '迭代 741\u00a0ms，基线 742\u00a0ms：−0.1%，在噪声之内；小于 22\u00a0ms 的变化不作判定。';
    const noise = { verdict: 'noise' as const, text, stepTimeMs: 741, deltaMs: -0.9, deltaShare: -0.0012, contributors: [], findings: [] };
    return { ...c, report: { ...c.report, comparison: comparison(lang, noise) } };
  },
  'no-comparison-with-base': (lang) => {
    const a = caseA(lang);
    const text =
      lang === 'en'
        ? 'Not comparable with the baseline: device `Ascend910B3`, baseline `Ascend910B1`.'
        : '与基线不可比：设备为 `Ascend910B3`，基线为 `Ascend910B1`。';
    const none = { verdict: 'incomparable' as const, text, deltaMs: null, deltaShare: null, interval: null };
    return { ...a, report: { ...a.report, comparison: comparison(lang, { ...none, contributors: [], metrics: [], findings: [] }) } };
  },
  fixed: (lang) => ({
    ...caseC(lang),
    previous: threeCauses(lang).map(({ id, title, saving }) => ({ id, title, saving: saving!.perStepMs })),
  }),
  pending: (lang) => ({ ...caseA(lang), pendingSha: NEXT, fromFork: true }),
  waiting: (lang) => ({ ...bare(lang), state: 'running', phase: 'waiting', workflow: null }),
  analysing: (lang) => ({ ...bare(lang), state: 'running', phase: 'analysing', workflow: null }),
  'no-run': (lang) => ({ ...caseE(lang), reason: { kind: 'no-run', deadlineMinutes: 180 }, workflow: null, onMissing: 'failure' }),
  'nothing-uploaded': (lang) => ({ ...caseE(lang), reason: { kind: 'no-match', uploaded: [] }, workflow: null, onMissing: 'skipped' }),
  expired: (lang) => ({ ...caseE(lang), reason: { kind: 'expired', artifact: 'npu-profile', expiredAt: '2026-03-01T08:00:00Z' } }),
  corrupt: (lang) => ({
    ...caseE(lang),
    reason: { kind: 'corrupt', artifact: 'npu-profile', detail: lang === 'en' ? 'its central directory is cut off.' : '中央目录不完整。' },
  }),
  'too-large': (lang) => ({ ...caseE(lang), reason: { kind: 'too-large', artifact: 'npu-profile', bytes: 7.4e9, limitBytes: 2e9 } }),
  'no-profile-inside': (lang) => ({ ...caseE(lang), reason: { kind: 'no-profile-inside', artifact: 'npu-profile' } }),
  'profile-of-another-kind': (lang) => ({
    ...caseE(lang),
    reason: {
      kind: 'no-profile-inside',
      artifact: 'npu-profile',
      detail:
        lang === 'en'
          ? 'npu-profile.zip holds no profile; upload the `*_ascend_pt` folders'
          : 'npu-profile.zip 中没有 profile；请上传 `*_ascend_pt` 目录',
    },
  }),
  error: (lang) => ({
    ...bare(lang),
    state: 'error',
    reason: lang === 'en' ? 'the analysis took longer than 10 minutes' : '分析超过 10 分钟未完成',
    hint: lang === 'en' ? 'upload fewer steps' : '减少上传的迭代',
    correlationId: 'k3-77',
  }),
  'config-invalid': (lang) => ({
    ...bare(lang),
    state: 'config-invalid',
    file: '.github/npu-advisor.yml',
    problems: [
      { line: 4, message: lang === 'en' ? 'unknown key `gates`; nearest is `gate`' : '未知的键 `gates`；最接近的是 `gate`' },
      { line: null, message: lang === 'en' ? 'the file has 90,000 bytes' : '文件有 90,000 字节' },
    ],
  }),
};

const EACH = Object.entries(CASES).flatMap(([name, make]) => LANGS.map((lang) => ({ name, lang, make })));

describe('the sticky comment', () => {
  it.each(EACH)('says what the golden says: $name ($lang)', async ({ name, lang, make }) => {
    await expect(renderComment(make(lang))).toMatchFileSnapshot(`golden/${name}.${lang}.md.golden`);
  });

  it.each(EACH)('starts with marker, state and one heading, and is short: $name ($lang)', ({ lang, make }) => {
    const body = renderComment(make(lang));
    const [marker, state, heading] = body.split('\n');
    expect(marker).toBe(commentMarker('npu-advisor', 42));
    expect(state).toMatch(/^<!-- npu-advisor:state sha=[0-9a-f]{40} [^<>]*-->$/);
    expect(heading).toMatch(/^### (✅|⚠️|❌|❔|⏳) NPU Advisor/u);
    expect(body.match(/^#/gm)).toHaveLength(1);
    expect(body.length).toBeLessThanOrEqual(4000);
    expect(body.match(/<details>/g)?.length ?? 0).toBeLessThanOrEqual(2);
    expect(body).not.toMatch(/NaN|undefined|Infinity|null/);
  });

  it.each(EACH)('ties numbers to their units: $name ($lang)', ({ lang, make }) => {
    const prose = renderComment(make(lang)).replace(/`[^`]*`/g, '');
    expect(prose).not.toMatch(/\d (ms|s|µs|GB|MB|kB|GHz|%)(?!\w)/);
    if (lang === 'zh') expect(prose).not.toMatch(/\d\s%/);
  });

  it('keeps its state readable for the next run', () => {
    expect(readCommentState(renderComment(caseA('en')))).toEqual({
      sha: SHA,
      report: '9b1c',
      lang: 'en',
      findings: ['dl-7f3a', 'sr-19c2', 'bb-02de'],
    });
    expect(readCommentState(renderComment(caseE('zh')))).toEqual({ sha: SHA, report: null, lang: 'zh', findings: [] });
    expect(readCommentState('### nothing of ours')).toBeNull();
  });

  it('shows three causes of many and says where the rest is', () => {
    const many = Array.from({ length: 200 }, (_, i) =>
      finding({
        id: `f${i}`,
        title: `cause ${i}`,
        saving: { basis: 'modelled', perStepMs: { floor: 1, likely: 300 - i, ceiling: 400 - i }, shareOfStep: 0.2, method: 'm' },
      }),
    );
    const body = renderComment(
      reportComment(report({ findings: many, totals: { claimedMsPerStep: { likely: 700, ceiling: 800 }, unexplainedIdleMs: null } })),
    );
    expect(body).toContain('200 causes cost about 700\u00a0ms');
    expect(body.match(/^\| \d/gm)).toHaveLength(3);
    expect(body).toContain('197 more causes in the full report.');
    expect(body.length).toBeLessThanOrEqual(6000);
  });

  it('cuts at a section border and says what was cut and where the rest is', () => {
    const view = caseA('en');
    const whole = renderComment(view);
    const cut = renderComment(view, whole.length - 200);
    expect(cut.length).toBeLessThanOrEqual(whole.length - 200);
    expect(cut).toContain('Cut for length here: evidence. The rest is in the [full report](https://github.com/acme/bert/runs/77).');
    expect(cut).toContain('<sub>Median of 8 steps');
    expect(cut).toContain('| 3 | Medium');
    expect(cut).not.toContain('<details>');
    const unlinked = renderComment({ ...view, links: { ...LINKS, report: null } }, 900);
    expect(unlinked).toContain('The rest is in the check run of this commit.');
  });

  it('links a line only when it was checked against the repository', () => {
    const of = (provenBy: 'profile' | 'syntax', file: string): string =>
      renderComment(
        reportComment(
          report({
            findings: [finding({ locations: [{ file, line: 7, symbol: null, provenBy }] })],
            totals: { claimedMsPerStep: { likely: 94, ceiling: 118 }, unexplainedIdleMs: null },
          }),
        ),
      );
    expect(of('profile', '/home/ci/code/bert/train.py')).toContain('| `bert/train.py:7` |');
    expect(of('syntax', 'src/a (b)/träin.py')).toContain(`(https://github.com/acme/bert/blob/${SHA}/src/a%20%28b%29/tr%C3%A4in.py#L7)`);
  });

  it('does not tell where on the runner a file lay', () => {
    expect(publicPath('/home/runner/code/bert/train.py')).toBe('bert/train.py');
    expect(publicPath('C:\\ci\\bert\\train.py')).toBe('bert/train.py');
    expect(publicPath('src/train.py')).toBe('src/train.py');
  });

  it('points a symptom to its cause and gives it no saving', () => {
    const symptom = finding({ id: 'wait', title: 'Seven ranks wait', severity: 'info', symptomOf: 'dl-7f3a', saving: null });
    const body = renderComment(
      reportComment(
        report({ findings: [symptom, finding()], totals: { claimedMsPerStep: { likely: 94, ceiling: 118 }, unexplainedIdleMs: null } }),
      ),
    );
    expect(body).toContain('1 cause costs about 94\u00a0ms');
    expect(body).not.toContain('Seven ranks wait');
    expect(body).not.toContain('Together');
  });

  it('counts a warning beside the causes, because it costs no time', () => {
    const warning = finding({ id: 'mig', rule: 'migration-review', title: 'fp16 without scaler', saving: null });
    const totals = { claimedMsPerStep: { likely: 94, ceiling: 118 }, unexplainedIdleMs: null };
    const both = renderComment(reportComment(report({ findings: [finding(), warning], totals })));
    expect(both).toContain('1 cause costs about 94\u00a0ms of an 812\u00a0ms step (12\u00a0%) · 1 warning');
    expect(both).toContain('| **High** · fp16 without scaler | no time |');
    const alone = renderComment(reportComment(report({ findings: [warning] })));
    expect(alone).toContain('### ⚠️ NPU Advisor: 1 warning that costs no measurable time');
  });

  it.each(LANGS)('stays quiet about causes too small to matter, and counts them (%s)', (lang) => {
    const small = finding({
      severity: 'info',
      saving: { basis: 'modelled', perStepMs: { floor: 1, likely: 3, ceiling: 5 }, shareOfStep: 0.004, method: 'm' },
    });
    const totals = { claimedMsPerStep: { likely: 3, ceiling: 5 }, unexplainedIdleMs: null };
    const body = renderComment(reportComment(report({ lang, verdict: { outcome: 'quiet', text: 'quiet' }, findings: [small], totals })));
    expect(body).toMatch(lang === 'en' ? /✅ NPU Advisor: nothing to change/ : /✅ NPU Advisor：无需修改/);
    expect(body).toContain(lang === 'en' ? '1 smaller one is in the full report' : '另有 1 个较小的原因见完整报告');
    expect(body).not.toContain('| 1 |');
  });

  it('says so when only a bound is known', () => {
    const bound = finding({
      saving: { basis: 'bound', perStepMs: { floor: 0, likely: null, ceiling: 118 }, shareOfStep: 0.145, method: 'm' },
    });
    const body = renderComment(
      reportComment(report({ findings: [bound], totals: { claimedMsPerStep: { likely: null, ceiling: 118 }, unexplainedIdleMs: null } })),
    );
    expect(body).toContain('1 cause costs up to 118\u00a0ms of an 812\u00a0ms step (15\u00a0%)');
    expect(body).toContain('| up to 118\u00a0ms |');
  });

  it.each(LANGS)('survives a report about nothing (%s)', (lang) => {
    const base = report({ lang });
    const nothing = report({
      lang,
      verdict: { outcome: 'no-data', text: lang === 'en' ? 'The archive holds no steps.' : '压缩包中没有迭代。' },
      job: {
        ...base.job,
        ranks: [],
        worldSize: null,
        steps: [],
        stepTimeMs: null,
        stepNoiseMs: null,
        stepBasis: lang === 'en' ? 'no step marks' : '没有迭代标记',
      },
      breakdown: [],
      checked: [],
    });
    const body = renderComment(reportComment(nothing));
    expect(body).toContain('❔');
    expect(body).not.toMatch(/NaN|undefined|Infinity|null/);
  });

  it.each(EACH)('has tables whose rows all have the same cells: $name ($lang)', ({ lang, make }) => {
    const tokens = gfm.parse(renderComment(make(lang)), {});
    let cells = 0;
    const widths: number[][] = [];
    for (const { type } of tokens) {
      if (type === 'table_open') widths.push([]);
      if (type === 'tr_open') cells = 0;
      if (type === 'td_open' || type === 'th_open') cells++;
      if (type === 'tr_close') widths.at(-1)!.push(cells);
    }
    for (const table of widths) expect(new Set(table).size).toBe(1);
  });
});
