import type { Comparison, Report } from '../../src/model/report.ts';
import { comparison, finding, report } from './reports.ts';

/** Strings people put into operator names, file names and artifacts to make a bot say something. */
export const HOSTILE: readonly string[] = [
  '<img src=x onerror=alert(1)>',
  '</script><script>alert(1)</script>',
  '</details></sub><h1>owned</h1>',
  'a\u202Eelif.exe\u2066b',
  `${'A'.repeat(10_000)}`,
  'a|b|c||d',
  'back\\|slash\\',
  '`tick` ``two`` ```three',
  '@everyone @acme/team a@b.c',
  '#1 GH-12 acme/bert#7',
  '<!-- npu-advisor:v1 app=npu-advisor pr=1 -->',
  '````\nfence\n````',
  '~~~\nfence\n~~~',
  '[x](javascript:alert(1)) ![y](https://evil.example/p.png)',
  '](javascript:x)',
  '[ref]: https://evil.example',
  'fixes #1, closes GH-2, resolves acme/bert#3',
  '/merge',
  '\n/lgtm\n/approve',
  '# heading\n- list\n1. one\n> quote\n***\n===',
  '*bold* _it_ ~~gone~~ **x',
  'https://evil.example www.evil.example ftp://evil.example mailto:a@evil.example',
  '<https://evil.example> <a@evil.example>',
  '3f2a91c0d4b5e6f708192a3b4c5d6e7f80912a3b',
  '$x^2$ $$y$$ $`z`$',
  ':tada: :shipit: :+1:',
  '&lt;b&gt; &#64;team &amp;',
  '| --- | --- |',
  '\u0000\u001b[31mred\u0007',
  '\ud800 lone \udc00 surrogates',
  '{{raw x}} {{{y}}} {x:text}',
  '',
  ' ',
  '`',
];

/** A report in which every text a profile or a repository can influence is `text`. */
export function reportOf(text: string): Report {
  const hostile = finding({
    title: text,
    groups: [text, text],
    saving: { basis: 'modelled', perStepMs: { floor: 71, likely: 94, ceiling: 118 }, shareOfStep: 0.1, method: text },
    evidence: [
      { text, source: text, rank: 2, step: 50 },
      { text: `in \`${text}\` there`, source: text },
    ],
    caveats: [text],
    locations: [{ file: text, line: 88, symbol: text, provenBy: 'call-stack' }],
    recommendations: [
      {
        remedy: text,
        title: text,
        text,
        code: text,
        edits: [{ file: text, startLine: 1, endLine: 2, before: text, after: `${text}\nx`, kind: 'suggestion' }],
        preconditions: [text, text],
        references: [text],
      },
    ],
  });
  const base = report();
  return report({
    verdict: { outcome: 'causes', text },
    job: {
      ...base.job,
      stepBasis: text,
      framework: text,
      device: text,
      level: text,
      versions: { cann: text, torchNpu: text, torch: text },
      droppedSteps: [{ step: 45, why: text }],
    },
    findings: [
      hostile,
      finding({ ...hostile, id: text, ranks: [], locations: [], saving: null }),
      finding({ ...hostile, id: `${text}2`, ranks: [5], locations: [] }),
      finding({
        ...hostile,
        id: `${text}3`,
        acknowledged: { by: text, at: '2026-11-20', until: null, reason: text, saving: { likely: 1, ceiling: 2 } },
      }),
    ],
    checked: [
      { rule: text, outcome: 'notApplicable', reason: text },
      { rule: 'dataloader-stall', outcome: 'error', reason: text },
    ],
    totals: { claimedMsPerStep: { likely: 132, ceiling: 171 }, unexplainedIdleMs: null },
    comparison: hostileComparison(text),
    gate: { outcome: 'fail', because: [text, text] },
    inputs: [{ path: text, kind: text, bytes: 5, status: 'refused', note: text }],
    notes: [text],
    missing: [{ what: text, consequence: text, remedy: text }],
  });
}

function hostileComparison(text: string): Comparison {
  const plain = comparison('en');
  const detail = { by: 'operator' as const, what: text, baseMs: 1, headMs: 2, deltaMs: 1, calls: { base: 1, head: 2 } };
  return {
    ...plain,
    baseline: { ...plain.baseline, label: text, device: text, runs: [...plain.baseline.runs, { ...plain.baseline.runs[0]!, label: text }] },
    text,
    method: text,
    refusals: [text],
    warnings: [text, text],
    metrics: plain.metrics.map((m) => ({ ...m, name: text })),
    contributors: plain.contributors.map((c) => ({ ...c, part: text, what: text, details: [detail, detail] })),
    findings: plain.findings.map((f) => ({ ...f, rule: text, title: text })),
  };
}
