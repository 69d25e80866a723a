/* The report as a page, in real Chromium: what it shows, that it stays inert, and how large it gets. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LANGS } from '../../src/model/lang.ts';
import type { BreakdownRow, Report } from '../../src/model/report.ts';
import { renderCheck } from '../../src/render/check.ts';
import { renderComment } from '../../src/render/comment.ts';
import { renderHtml } from '../../src/render/html/page.ts';
import { renderMarkdown } from '../../src/render/markdown.ts';
import { renderSarif } from '../../src/render/sarif.ts';
import { word } from '../../src/render/words.ts';
import { fullReport, packed } from './full-report.ts';
import { HOSTILE, reportOf } from './hostile.ts';
import { breakdownRow, caseA, caseB, caseC, caseD, finding, report } from './reports.ts';

const CHROMIUM = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';
const MB = 1e6;

/** Every rank and step, one rank and one step slow. */
function large(ranks: number, steps: number): Report {
  const rows: BreakdownRow[] = [];
  for (let rank = 0; rank < ranks; rank++) {
    for (let step = 0; step < steps; step++) {
      const slow = (rank === 700 % ranks ? 40 : 0) + (step === 17 % steps ? 25 : 0);
      const computingMs = 500 + ((rank * 7 + step * 3) % 5) + slow;
      rows.push({
        ...breakdownRow(rank, step, [500, 200, 100]),
        stepMs: computingMs + 300,
        stageMs: computingMs + 300,
        computingMs,
        exposedCommunicationMs: 200,
        freeMs: 100,
      });
    }
  }
  const all = Array.from({ length: ranks }, (_, i) => i);
  return report({
    job: { ...report().job, ranks: all, worldSize: ranks, steps: Array.from({ length: steps }, (_, i) => i), stepTimeMs: 840 },
    breakdown: rows,
    findings: [finding({ ranks: all })],
    verdict: { outcome: 'causes', text: '1 cause costs about 94 ms (11 %) of an 840 ms step.' },
    totals: { claimedMsPerStep: { likely: 94, ceiling: 118 }, unexplainedIdleMs: 40 },
    views: {
      idleAccount: [
        { rank: 700 % ranks, step: 0, cause: 'loader', ms: 60, gaps: 1, findingId: 'dl-7f3a' },
        { rank: 700 % ranks, step: 0, cause: 'unexplained', ms: 40, gaps: 9, findingId: null },
      ],
      waits: all.map((rank) => ({ rank, causedMs: rank === 5 ? 38 : 0, waitedMs: rank === 5 ? 0 : 38, lastCount: rank === 5 ? 208 : 1 })),
      arrivals: [
        {
          group: '586',
          ranks: all.slice(0, 64),
          members: ranks,
          matched: 216,
          columns: Array.from({ length: 120 }, (_, i) => ({
            op: 'allReduce',
            step: i % steps,
            folded: 1,
            culprit: 5,
            skewMs: 4,
            perRankUs: all.slice(0, 64).map((rank) => (rank === 5 ? 4000 : rank - 30)),
          })),
        },
      ],
    },
  });
}

/** Views in which every name is `text`. */
function hostileViews(text: string): Report['views'] {
  const full = fullReport('en').views as {
    kernels: { groups: object[] };
    transfers: { kinds: object[]; groups: object[] };
    timeline: { parts: object[] };
    links: object[];
    trend: { points: object[] };
  };
  return {
    kernels: {
      ...full.kernels,
      groups: full.kernels.groups.map((g) => ({ ...g, type: text, core: text, shapes: text, place: { file: text, line: 1 } })),
      cores: [{ core: text, ms: 1 }],
    },
    transfers: {
      ...full.transfers,
      kinds: full.transfers.kinds.map((k) => ({ ...k, op: text })),
      groups: full.transfers.groups.map((g) => ({ ...g, group: text, name: text })),
    },
    links: full.links.map((l) => ({ ...l, group: text })),
    trend: { ...full.trend, branch: text, points: full.trend.points.map((p) => ({ ...p, sha: text })) },
    timeline: { parts: full.timeline.parts.map((p) => ({ ...p, names: [text, text, text] })), leftOut: { ranks: 0, steps: 0 } },
  };
}

/** The page without its script, which may name such values. */
const bare = (page: string): string => page.replace(/<script>[\s\S]*?<\/script>/g, '');

/** Every axis has no length. */
function momentary(): Report {
  const of = fullReport('en');
  const kinds = [{ op: 'send', members: 2, betweenServers: false, calls: 1, bytes: 8, ms: 1, line: null, points: [[8, 1]] }];
  const still = { stepTimeMs: 5, freeShare: 0, exposedMs: 0, top: [] };
  return {
    ...of,
    comparison: {
      ...of.comparison!,
      stepTimeMs: 5,
      baseline: { ...of.comparison!.baseline, runs: [{ label: 'a', steps: 1, stepTimeMs: 5, noiseMs: 0 }] },
    },
    views: {
      ...of.views,
      transfers: { of: 1, mayWait: 1, kinds, groups: [] },
      trend: { branch: 'main', points: [1, 2, 3].map((at) => ({ sha: 'a'.repeat(40), at, metrics: still })), now: still },
      input: {
        ranks: [{ rank: 0, iterator: null, steps: [{ step: null, fetchMs: 0, stallMs: 0, prepareMs: 0, prepareIdleMs: 0 }] }],
        of: { ranks: 1, steps: 1 },
      },
      links: [
        {
          group: 'x',
          rows: [[0], [1]],
          foldedBy: null,
          cells: [{ from: 0, to: 1, transport: 'SIO', bytes: 1, ms: 1, links: 1, worst: [0, 1] }],
        },
      ],
    },
  };
}

const NONSENSE = /\bNaN\b|\bundefined\b|Infinity|\[object/;

describe('the page without a browser', () => {
  it.each(LANGS)('says every figure of the comment (%s)', (lang) => {
    for (const make of [caseA, caseB, caseC, caseD]) {
      const { report: of } = make(lang);
      const page = renderHtml(of);
      const comment = renderComment(make(lang));
      // The figures of the causes, as the comment writes them.
      for (const [figure] of comment
        .split('\n')
        .filter((l) => /^\| \d/.test(l))
        .join('\n')
        .matchAll(/\*\*([^*]*\d[^*]*ms)\*\*/g))
        expect(page).toContain(figure.replaceAll('*', ''));
      expect(NONSENSE.exec(bare(page))).toBeNull();
    }
  });

  it('stays within its size: 8 × 8 below 3 MB, 1,024 × 50 below 8 MB', () => {
    expect(Buffer.byteLength(renderHtml(large(8, 8)))).toBeLessThan(3 * MB);
    // With as many slices as the timeline holds at most, whose times nothing can pack.
    let seed = 1;
    const random = (): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed;
    };
    const data = packed(Array.from({ length: 20_000 }, (_, i) => [i * 5000, random() % 5000, random() % 200, 0] as const));
    const names = Array.from({ length: 200 }, (_, i) => `aclnnMatmulReduceScatterOperatorNumber${i}`);
    const parts = Array.from({ length: 20 }, (_, rank) => ({
      ...{ rank, step: 0, startUs: 0, lengthMs: 1000, shiftMs: 0, names },
      lanes: [{ lane: 'device', stream: 2, count: 20_000, data }],
    }));
    const of = large(1024, 50);
    const full = renderHtml({ ...of, views: { ...of.views, timeline: { parts, leftOut: { ranks: 1004, steps: 49 } } } });
    expect(Buffer.byteLength(full)).toBeGreaterThan(1.5 * MB);
    expect(Buffer.byteLength(full)).toBeLessThan(8 * MB);
    // What is not in the file is named among the notes, too.
    expect(full.slice(full.indexOf('<section id="checks"'))).toContain('Timeline: Not in this file: 1,004 ranks and 49 steps');
    const nothing = { breakdown: [], findings: [], checked: [], inputs: [], views: {}, job: { ...report().job, ranks: [], steps: [] } };
    expect(Buffer.byteLength(renderHtml(report(nothing)))).toBeLessThan(210_000);
  });

  it('adds up for any report: the bar and the waterfall, as drawn and as written', () => {
    const ms = fc.double({ min: 0, max: 1e4, noNaN: true });
    const shares = fc.array(fc.tuple(fc.constantFrom('loader', 'sync', 'gc', 'launch', 'copy', 'unexplained'), ms), { maxLength: 6 });
    const figures = (part: string, of: RegExp): number => [...part.matchAll(of)].reduce((sum, [, value]) => sum + Number(value), 0);
    fc.assert(
      fc.property(ms, ms, ms, shares, (computing, exposed, free, parts) => {
        const owners = [...new Map(parts)];
        const page = renderHtml(
          report({
            checked: [],
            breakdown: [breakdownRow(0, 50, [computing, exposed, free])],
            views: { idleAccount: owners.map(([cause, ms]) => ({ rank: 0, step: 50, cause, ms, gaps: 1, findingId: null })) },
          }),
        );
        const bar = page.slice(page.indexOf('<figure aria-labelledby="bar-c"'), page.indexOf('<section id="causes"'));
        const step = computing + exposed + free;
        expect(Math.abs(figures(bar, /data-ms="([^"]+)"/g) - step)).toBeLessThanOrEqual(0.01 * owners.length + 0.01);
        if (step > 1) expect(Math.abs(figures(bar, /class="k-(?!overlapped)[a-z]+" style="width:([\d.]+)%/g) - 100)).toBeLessThan(0.05);
        const idle = page.slice(page.indexOf('<section id="idle"'), page.indexOf('<section id="ranks"'));
        const total = owners.reduce((sum, [, ms]) => sum + ms, 0);
        if (!idle.includes('class="falls"')) return void expect(total).toBe(0);
        expect(Math.abs(figures(idle, /;width:([\d.]+)%/g) - 100)).toBeLessThan(0.05);
        const [, whole, rest] = /([\d,.]+) = ([\d,. +]+) ms/.exec(idle)!;
        const number = (said: string): number => Number(said.replaceAll(',', ''));
        expect(Math.abs(number(whole!) - total)).toBeLessThan(0.06);
        const sum = rest!.split(' + ').reduce((all, said) => all + number(said), 0);
        // Each summand is written to 0.1 ms.
        expect(Math.abs(sum - total)).toBeLessThanOrEqual(0.051 * owners.length);
      }),
      { numRuns: 40, seed: 11 },
    );
  });

  it.each(LANGS)('never says of a line found by its form alone that the profile proves it (%s)', (lang) => {
    const of = caseA(lang);
    const findings = of.report.findings.map((f) => ({ ...f, locations: f.locations.map((l) => ({ ...l, provenBy: 'syntax' as const })) }));
    const guessed = { ...of, report: { ...of.report, findings } };
    const outputs = (view: typeof of): string[] => {
      const check = renderCheck({ comment: view, annotatable: () => true });
      const said = check.annotations.map(({ title, message, raw_details }) => title + message + raw_details).join();
      return [renderHtml(view.report), renderMarkdown(view.report), check.text, renderComment(view), said, renderSarif(view.report)];
    };
    for (const output of outputs(guessed)) expect(output).not.toContain(word('proof.call-stack', lang));
    for (const output of outputs(guessed).slice(0, 3)) expect(output).toContain(word('proof.syntax', lang));
    expect(outputs(of)[0]).toContain(word('proof.call-stack', lang));
  });

  it.each([
    [
      'one rank, one step',
      ['1 step', 'One rank: waiting can be seen, its cause cannot.', 'nothing to change'],
      report({ job: { ...report().job, ranks: [0], steps: [50] }, breakdown: [breakdownRow(0, 50, [500, 200, 100])] }),
    ],
    [
      'nothing captured',
      ['No step breakdown was captured.', 'Step time unknown', 'This report holds no timeline', 'profile_memory=True'],
      report({ breakdown: [], findings: [], views: {}, job: { ...report().job, ranks: [], steps: [], stepTimeMs: null } }),
    ],
    [
      'a step of no length',
      ['No step breakdown was captured.'],
      report({ job: { ...report().job, stepTimeMs: null }, breakdown: [breakdownRow(0, 50, [0, 0, 0]), breakdownRow(1, 50, [0, 0, 0])] }),
    ],
    [
      'ranks that are not there',
      ['ranks 3 and 7: no files', 'which of them is late', 'upload every rank'],
      report({
        verdict: { outcome: 'incomplete', text: 'Two ranks are missing.' },
        job: { ...report().job, ranks: [0, 1, 2, 4, 5, 6], missingRanks: [3, 7] },
        missing: [{ what: 'ranks 3 and 7: no files', consequence: 'which of them is late', remedy: 'upload every rank' }],
      }),
    ],
    [
      'a rule that failed',
      ['could not run', 'its file is damaged'],
      report({ checked: [{ rule: 'l2-miss', outcome: 'error', reason: 'its file is damaged' }] }),
    ],
    [
      'views of another shape',
      [],
      report({
        views: {
          idleAccount: 'x',
          waits: {},
          arrivals: [{}],
          operators: 3,
          memory: [[]],
          gapHistogram: null,
          input: { ranks: [{}] },
          kernels: [],
          links: { cells: 1 },
          transfers: 'x',
          trend: { points: [] },
          timeline: { parts: [{ lanes: 1 }] },
        },
      }),
    ],
    ['the same moment, the same size', [], momentary()],
  ] as const)('%s: no figure that is none, no section missing, and what is not there is said', (_, said, of) => {
    const page = renderHtml(of);
    const main = page.slice(page.indexOf('<main>'), page.indexOf('</main>')).replaceAll(/<[^>]+>/g, '');
    for (const words of said) expect(main.replaceAll('\u00a0', ' ').toLowerCase()).toContain(words.toLowerCase());
    expect(NONSENSE.exec(bare(page))).toBeNull();
    for (const id of [
      'verdict',
      'causes',
      'step',
      'idle',
      'ranks',
      'communication',
      'operators',
      'input',
      'timeline',
      'comparison',
      'memory',
      'checks',
    ])
      expect(page).toContain(`<section id="${id}"`);
  });

  it('never draws what was not captured as 0', () => {
    const full = fullReport('en');
    const kernels = full.views.kernels as { groups: { pipes: unknown; l2Hit: unknown }[] };
    const unmeasured = kernels.groups.map((group) => ({ ...group, pipes: null, l2Hit: null }));
    const page = renderHtml({
      ...full,
      breakdown: full.breakdown.filter(({ rank, step }) => !(rank === 3 && step === 48)),
      views: { ...full.views, kernels: { ...kernels, groups: unmeasured }, links: [], input: null, memory: [] },
    });
    const map = page.slice(page.indexOf('id="step-map"'), page.indexOf('id="step-columns"'));
    expect(/class="missing" d="([^"]*)"/.exec(map)![1]!.match(/M/g)).toHaveLength(1);
    expect(
      map
        .match(/class="h\d" d="[^"]*"/g)!
        .join('')
        .match(/M/g),
    ).toHaveLength(63);
    for (const reason of [
      'aic_metrics=PipeUtilization',
      'l2_cache=True',
      'communication_matrix.json',
      'No DataLoader event',
      'profile_memory=True',
    ])
      expect(page).toContain(reason);
    expect(page).not.toContain('class="pipe"');
  });

  it('gives the same bytes for the same report', () => {
    expect(renderHtml(large(8, 8))).toBe(renderHtml(large(8, 8)));
  });
});

const dir = mkdtempSync(join(tmpdir(), 'npu-advisor-page-'));
let browser: Browser;
beforeAll(async () => {
  if (existsSync(CHROMIUM)) browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
});
afterAll(async () => {
  await browser?.close();
  rmSync(dir, { recursive: true, force: true });
});

describe.skipIf(!existsSync(CHROMIUM))('the page in Chromium', () => {
  async function open(
    of: Report,
    options: { scripts?: boolean; hash?: string } = {},
  ): Promise<{ page: Page; requests: string[]; trouble: string[]; spentMs(): Promise<number> }> {
    const file = join(dir, 'report.html');
    writeFileSync(file, renderHtml(of));
    const page = await browser.newPage({ javaScriptEnabled: options.scripts ?? true, viewport: { width: 1200, height: 900 } });
    const requests: string[] = [];
    const trouble: string[] = [];
    page.on('request', (r) => requests.push(r.url()));
    page.on('console', (m) => trouble.push(m.text()));
    page.on('pageerror', (e) => trouble.push(e.message));
    // Time of the page's own thread: what other programs of a busy machine take is not the page's.
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
    const spentMs = async (): Promise<number> =>
      (await cdp.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration')!.value * 1000;
    await page.goto(`file://${file}${options.hash ?? ''}`);
    return { page, requests, trouble, spentMs };
  }

  it('opens alone, and its parts add up to the step', async () => {
    const { page, requests, trouble } = await open(large(8, 8), { hash: '#f=dl-7f3a' });
    expect(requests).toHaveLength(1);
    expect(trouble).toEqual([]);
    expect(await page.title()).toMatch(/cause costs .* · NPU Advisor$/);
    const parts = await page.locator('#step-bar [data-ms]').evaluateAll((all) => all.map((b) => Number(b.getAttribute('data-ms'))));
    expect(parts.reduce((a, b) => a + b, 0)).toBeCloseTo(840, 0);
    // A link from a comment opens its cause.
    await expect.poll(() => page.locator('.cause.shown').count()).toBe(1);
    // The rank that is late has its mark in every column, in the first row of the table too.
    expect(await page.locator('#waits tbody tr').first().locator('td').first().textContent()).toBe('5');
    const tick = await page.locator('#arrivals-0 path.tick').getAttribute('d');
    expect(tick?.match(/M/g)).toHaveLength(120);
    const heads = page.locator('#waits th button');
    await heads.nth(2).click();
    expect(await page.locator('#waits tbody tr').last().locator('td').first().textContent()).toBe('5');
    await page.locator('#q').fill('nothing like it');
    expect(await page.locator('.cause:visible').count()).toBe(0);
    await page.close();
  });

  it('opens 1,024 ranks × 50 steps in less than 4 s, and the slow rank stands out', async () => {
    const { page, requests, trouble, spentMs } = await open(large(1024, 50));
    await page.locator('#step-map svg').waitFor();
    const spent = await spentMs();
    console.log(`1,024 ranks × 50 steps: ${spent.toFixed(0)} ms of its own time`);
    expect(spent).toBeLessThan(4000);
    expect([requests.length, trouble]).toEqual([1, []]);
    expect(await page.locator('#step-map').textContent()).toContain('rank/step: 700/17');
    // Folded 7 to a row, rank 700 lies in row 100; only there, in step 17, is the darkest colour.
    const map = page.locator('#step-map svg.map');
    const [width, height] = (await map.getAttribute('viewBox'))!.split(' ').slice(2).map(Number) as [number, number];
    const rows = Math.ceil(1024 / 7);
    const darkest = [...(await page.locator('#step-map path.h6').getAttribute('d'))!.matchAll(/M([\d.]+) ([\d.]+)/g)];
    expect(darkest.map(([, x, y]) => [Math.round((Number(x) / width) * 50), Math.round((Number(y) / height) * rows)])).toEqual([[17, 100]]);
    await map.scrollIntoViewIfNeeded();
    const box = (await map.boundingBox())!;
    await page.mouse.move(box.x + (17.5 / 50) * box.width, box.y + (100.5 / rows) * box.height);
    expect((await page.locator('#step-map [data-map-tip]').textContent())!.toLowerCase()).toContain('rank 700 · step 17: 8');
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(1200);
    await page.close();
  });

  it('opens 64 ranks × 50 steps in less than 2 s', async () => {
    const { page, requests, trouble, spentMs } = await open(large(64, 50));
    const loaded = await page.evaluate<number>('performance.getEntriesByType("navigation")[0].loadEventEnd');
    const spent = await spentMs();
    console.log(`64 ranks × 50 steps: ${loaded.toFixed(0)} ms, of it ${spent.toFixed(0)} ms of its own`);
    expect(spent).toBeLessThan(2000);
    expect(await page.locator('#step-columns [data-rank]').count()).toBe(64);
    expect([requests.length, trouble]).toEqual([1, []]);
    await page.close();
  });

  it('reads without scripts, and on a telephone', async () => {
    const { page } = await open(fullReport('en'), { scripts: false });
    const text = await page.locator('body').textContent();
    for (const word of [
      '70.5\u00a0ms slower',
      'Data loader starves',
      'Step breakdown',
      'num_workers=8',
      '168.0 = 94.0 + 31.2 + 30.4 + 12.4 ms',
    ])
      expect(text).toContain(word);
    // Tables of steps, idle time and checks are all there, and what is folded opens without scripts.
    // 8 steps of 8 ranks, and the map of them by rank.
    expect(await page.locator('#step details tbody tr').count()).toBe(64 + 8);
    expect(await page.locator('#idle-account tbody tr:visible').count()).toBe(4);
    const checks = page.locator('#checks details').first();
    await checks.locator('summary').click();
    expect(await checks.locator('tbody tr:visible').count()).toBe(fullReport('en').checked.length);
    expect(await page.locator('#timeline .noscript').isVisible()).toBe(true);
    expect(await page.locator('button:visible').count()).toBe(0);
    await page.setViewportSize({ width: 320, height: 700 });
    expect((await page.locator('main').boundingBox())!.width).toBeLessThanOrEqual(320);
    await page.close();
  });

  it('keeps hostile names inert', async () => {
    const name = HOSTILE.join(' ');
    const of = reportOf(name);
    const views = {
      ...large(2, 2).views,
      operators: [{ rank: 0, types: [{ type: name, core: name, count: 3, ms: 2 }] }],
      memory: [{ rank: 0, deviceBytes: null, peaks: null, peakAt: { ms: null, operator: name }, curve: null }],
      ...hostileViews(name),
    };
    const plain = await open({ ...reportOf('x'), views: { ...views, ...hostileViews('x') } });
    const elements = await plain.page.locator('*').count();
    await plain.page.close();
    const { page, requests, trouble } = await open({ ...of, views });
    expect(requests).toHaveLength(1);
    expect(trouble).toEqual([]);
    expect(await page.locator('img, iframe, object, form, base, link').count()).toBe(0);
    expect(await page.locator('h1').count()).toBe(1);
    expect(
      await page
        .locator('a')
        .evaluateAll((all) =>
          all.map((a) => (a as unknown as { href: string }).href).filter((h) => !/^(file:.*#|https:\/\/pytorch\.org\/)/.test(h)),
        ),
    ).toEqual([]);
    // Literals between backticks may become more or fewer code spans, nothing else may.
    const codes = await page.locator('code, pre span').count();
    expect(Math.abs((await page.locator('*').count()) - elements)).toBeLessThanOrEqual(codes);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(1200);
    await page.close();
  });
});

/** `count` kernels of 65 µs each ms on a second stream each; one collective that overlaps. */
function withTimeline(ranks: number, count: number): Report {
  const parts = Array.from({ length: ranks }, (_, rank) => ({
    rank,
    step: 50,
    startUs: 1000,
    lengthMs: count,
    shiftMs: 0,
    names: ['MatMulV2', 'hcom_allReduce_1'],
    lanes: [
      { lane: 'device', stream: 2, count, data: packed(Array.from({ length: count }, (_, i) => [i * 100_000, 6500, 0, 0])) },
      { lane: 'communication', stream: -1, count: 1, data: packed([[0, 10_000, 1, 1]]) },
    ],
  }));
  return report({
    findings: [finding({ evidence: [{ text: 'here', source: null, rank: 1, step: 50, startUs: 1000 + 200_000, durationUs: 65 }] })],
    views: { timeline: { parts, leftOut: { ranks: 0, steps: 0 } } },
  });
}

describe.skipIf(!existsSync(CHROMIUM))('the timeline', () => {
  async function open(of: Report, hash = ''): Promise<Page> {
    const file = join(dir, 'report.html');
    writeFileSync(file, renderHtml(of));
    const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, colorScheme: 'light' });
    await page.goto(`file://${file}${hash}`);
    await expect.poll(() => page.evaluate('globalThis.timeline?.stats().frames ?? 0'), { timeout: 20_000 }).toBeGreaterThan(0);
    return page;
  }
  const view = (page: Page): Promise<[number, number]> => page.evaluate('globalThis.timeline.view()');
  const press = async (page: Page, key: string): Promise<void> => {
    await page.locator('#tl-draw').focus();
    await page.keyboard.press(key);
    await page.waitForTimeout(60);
  };
  /** Painted share of the lane of kernels, read back from the canvas. */
  const painted = (page: Page): Promise<number> =>
    page.evaluate(`(() => {
      const c = document.getElementById('tl-draw');
      const lane = globalThis.timeline.lanes().findIndex((l) => l.title.endsWith('stream 2'));
      const { data } = c.getContext('2d').getImageData(timeline.LABEL, timeline.top(lane), c.width - timeline.LABEL, timeline.LANE);
      let on = 0;
      // From white to the blue of computing; an edge between pixels is a blend of both.
      for (let i = 0; i < data.length; i += 4) on += ((data[i + 3] / 255) * (255 - data[i])) / (255 - 0x2a);
      return on / (data.length / 4);
    })()`);

  it('shows a lane that is 6.5 % busy as 6.5 % full, far and near', async () => {
    const page = await open(withTimeline(1, 8000));
    for (const span of [8000, 8000 / 3, 1000, 300, 100, 30]) {
      expect(await painted(page), `${span} ms in view`).toBeGreaterThan(0.05);
      expect(await painted(page), `${span} ms in view`).toBeLessThan(0.08);
      for (let wide = span; wide > span / 3; ) {
        await press(page, 'w');
        const [from, to] = await view(page);
        wide = to - from;
      }
    }
    await page.close();
  });

  it('looks equally busy in every twentieth of the view on both sides of the switch to single slices', async () => {
    // Lanes of uneven slices, hardly, half and almost always busy.
    let seed = 7;
    const random = (): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    const lanes = [0.065, 0.5, 0.93].map((busy) => {
      const slices: [number, number, number, number][] = [];
      for (let at = 0; slices.length < 1500; ) {
        const long = Math.round(-Math.log(1 - random()) * 100_000 * busy) + 1;
        slices.push([at, long, 0, 0]);
        at += long + Math.round(-Math.log(1 - random()) * 100_000 * (1 - busy));
      }
      return slices;
    });
    const parts = lanes.map((slices, rank) => ({
      ...{ rank, step: 50, startUs: 0, lengthMs: 1400, shiftMs: 0, names: ['MatMulV2'] },
      lanes: [{ lane: 'device', stream: 2, count: slices.length, data: packed(slices) }],
    }));
    const page = await open(report({ views: { timeline: { parts, leftOut: { ranks: 0, steps: 0 } } } }), '#s=50&t=0-1400');
    const room = await page.evaluate<number>('document.getElementById("tl-draw").clientWidth - timeline.LABEL');
    for (const [rank, slices] of lanes.entries()) {
      // The last view that is drawn slice by slice, and the first that is not.
      const most = Math.floor(room / 6);
      const from = 20_000_000;
      const first = slices.findIndex(([start]) => start >= from);
      const shown: { rects: number; off: number }[] = [];
      for (const count of [most - 2, most + 2]) {
        const to = slices[first + count]![0];
        const t = `${(from / 1e5).toFixed(4)}-${(to / 1e5).toFixed(4)}`;
        const frames = await page.evaluate<number>('timeline.stats().frames');
        await page.evaluate(`location.hash = 's=50&t=${t}'`);
        await expect.poll(() => page.evaluate<number>('timeline.stats().frames')).toBeGreaterThan(frames);
        const shares = await page.evaluate<number[]>(`(() => {
          const c = document.getElementById('tl-draw');
          const lane = timeline.lanes().findIndex((l) => l.rank === ${rank} && l.title.endsWith('stream 2'));
          const width = c.width - timeline.LABEL;
          const { data } = c.getContext('2d').getImageData(timeline.LABEL, timeline.top(lane), width, timeline.LANE);
          return Array.from({ length: 20 }, (_, k) => {
            let [on, all] = [0, 0];
            const [a, b] = [Math.round((k * width) / 20), Math.round(((k + 1) * width) / 20)];
            for (let y = 0; y < timeline.LANE; y++)
              for (let x = a; x < b; x++, all++) {
                const i = 4 * (y * width + x);
                on += Math.min(1, (255 - data[i]) / (255 - 0x2a)) * (data[i + 3] / 255);
              }
            return on / all;
          });
        })()`);
        const off = shares.map((share, k) => {
          const [a, b] = [k, k + 1].map((n) => from + ((to - from) * Math.round((n * room) / 20)) / room) as [number, number];
          const busy = slices.reduce((sum, [start, long]) => sum + Math.max(0, Math.min(b, start + long) - Math.max(a, start)), 0);
          return Math.abs(share - busy / (b - a));
        });
        shown.push({ rects: await page.evaluate<number>('timeline.stats().rects'), off: Math.max(...off) });
      }
      const [single, folded] = shown as [(typeof shown)[0], (typeof shown)[0]];
      console.log(`lane ${rank}: off by ${[single, folded].map(({ off }) => (100 * off).toFixed(1)).join(' and ')} points at most`);
      // It was the switch: hundreds of slices are one picture now.
      expect(single.rects - folded.rects).toBeGreaterThan(most / 2);
      // Together within two points of the truth, so that no part changes by more.
      expect(single.off + folded.off).toBeLessThan(0.02);
    }
    await page.close();
  });

  it('keeps to the pointer at any size of pixels, tells what is under it, and a damaged block costs only this section', async () => {
    const page = await open(withTimeline(1, 400), '#s=50&t=100-110');
    const cdp = await page.context().newCDPSession(page);
    for (const zoom of [0.67, 1, 1.5, 2]) {
      await cdp.send('Emulation.setDeviceMetricsOverride', {
        ...{ width: Math.round(1200 / zoom), height: Math.round(900 / zoom), deviceScaleFactor: zoom, mobile: false },
      });
      await expect
        .poll(() =>
          page.evaluate(
            'Math.abs(document.getElementById("tl-draw").width / devicePixelRatio - document.getElementById("tl-box").clientWidth)',
          ),
        )
        .toBeLessThan(1.1);
      const canvas = page.locator('#tl-draw');
      await canvas.scrollIntoViewIfNeeded();
      const box = (await canvas.boundingBox())!;
      const top = await page.evaluate<number>('timeline.top(timeline.lanes().findIndex((l) => l.title.endsWith("stream 2")))');
      // The middle of the kernel that starts at 104 ms, and the middle of the gap behind it.
      const px = (ms: number): number => box.x + 150 + ((ms - 100) / 10) * (box.width - 150);
      await page.mouse.click(px(104.0325), box.y + top + 9);
      expect(await page.locator('#tl-live').textContent(), `${zoom}`).toContain('· 105 / 400');
      await page.mouse.click(px(104.5), box.y + top + 9);
      await page.locator('#tl-live').click();
      await press(page, 'Escape');
      expect(await page.locator('#tl-live').textContent()).toBe('');
    }
    await page.close();
    const { views, ...rest } = withTimeline(1, 400);
    const { parts } = views.timeline as { parts: { lanes: object[] }[] };
    const damaged = parts.map((part) => ({ ...part, lanes: part.lanes.map((lane) => ({ ...lane, data: 'AAAA' })) }));
    const file = join(dir, 'report.html');
    writeFileSync(file, renderHtml({ ...rest, views: { timeline: { parts: damaged, leftOut: { ranks: 0, steps: 0 } } } }));
    const broken = await browser.newPage();
    const trouble: string[] = [];
    broken.on('pageerror', (e) => trouble.push(e.message));
    await broken.goto(`file://${file}`);
    await expect.poll(() => broken.locator('#timeline .noscript').textContent()).toBe(word('html.timeline.broken', 'en'));
    expect(await broken.locator('#timeline .noscript').isVisible()).toBe(true);
    expect(await broken.locator('#rank-bars .rank').count()).toBe(8);
    expect(await broken.locator('#theme').isVisible()).toBe(true);
    expect(trouble).toEqual([]);
    await broken.close();
  });

  it('moves by keys, undoes, selects, and follows evidence and links', async () => {
    const page = await open(withTimeline(2, 400), '#s=50&t=100.0000-200.0000');
    expect((await view(page)).map(Math.round)).toEqual([100, 200]);
    await press(page, '0');
    expect((await view(page)).map(Math.round)).toEqual([0, 400]);
    await press(page, 'w');
    expect((await view(page))[1] - (await view(page))[0]).toBeCloseTo(400 / 1.5, 3);
    await press(page, 'd');
    expect((await view(page))[0]).toBeCloseTo(200 - 200 / 1.5 + 400 / 1.5 / 4, 3);
    await press(page, 'Backspace');
    expect((await view(page)).map(Math.round)).toEqual([0, 400]);
    // Back and out again; then a slice of a lane, the next, the one before, its frame, its figures, nothing.
    await press(page, 'w');
    const inner = await view(page);
    await press(page, 'd');
    await press(page, 'a');
    expect((await view(page)).map((ms, i) => Math.abs(ms - inner[i]!) < 1e-6)).toEqual([true, true]);
    await press(page, 's');
    expect((await view(page)).map(Math.round)).toEqual([0, 400]);
    const stream = await page.evaluate<number>('timeline.lanes().findIndex((l) => l.title.endsWith("stream 2"))');
    for (let lane = 0; lane <= stream + 1; lane++) await press(page, 'ArrowDown');
    await press(page, 'ArrowUp');
    const live = page.locator('#tl-live');
    expect(await live.textContent()).toContain('· 1 / 400');
    await press(page, '.');
    await press(page, '.');
    await press(page, ',');
    expect(await live.textContent()).toContain('· 2 / 400');
    await press(page, 'f');
    expect((await view(page)).map((ms) => Math.round(ms * 1000))).toEqual([935, 1130]);
    await press(page, 'm');
    expect(Number(await page.locator('#tl-panel tr[data-busy]').first().getAttribute('data-busy'))).toBeCloseTo(0.065, 6);
    await press(page, 'Escape');
    expect([await live.textContent(), await page.locator('#tl-panel tr').count()]).toEqual(['', 0]);
    // Each of these has its button as well.
    expect(await page.locator('#tl [data-key]').evaluateAll((all) => all.map((b) => b.getAttribute('data-key')))).toEqual(
      expect.arrayContaining(['w', 's', 'a', 'd', '0', 'Backspace']),
    );
    // The slice that the evidence names is framed, on its rank.
    await page.locator('button.show').click();
    await page.waitForTimeout(100);
    const [from, to] = await view(page);
    expect(from).toBeLessThan(200);
    expect(to).toBeGreaterThan(200.065);
    expect(to - from).toBeLessThan(1);
    // Two lanes overlap for 65 µs: the union is told, and the sum beside it.
    await press(page, '0');
    const box = (await page.locator('#tl-draw').boundingBox())!;
    const perMs = (box.width - 150) / 400;
    await page.mouse.move(box.x + 150, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + 150 + perMs, box.y + 60, { steps: 4 });
    await page.mouse.move(box.x + 150 + 3.5 * perMs, box.y + 60, { steps: 4 });
    await page.mouse.up();
    const row = page.locator('#tl-panel tr[data-busy]').first();
    const [busy, sum] = [Number(await row.getAttribute('data-busy')), Number(await row.getAttribute('data-sum'))];
    // 0 … 0.1 ms by both, then three kernels of 65 µs.
    expect(busy).toBeCloseTo(0.1 + 3 * 0.065, 6);
    expect(sum).toBeCloseTo(0.1 + 4 * 0.065, 6);
    await press(page, 'ArrowDown');
    await press(page, '.');
    expect(await page.locator('#tl-live').textContent()).toMatch(/\d+ \/ \d+/);
    await page.close();
  });

  it('draws 8 ranks × 30,000 slices smoothly: median frame at most 16 ms, worst 50 ms, at most 10,000 rectangles', async () => {
    const page = await open(withTimeline(8, 30_000));
    await page.locator('#tl-draw').evaluate((c) => (c as unknown as { scrollIntoView(): void }).scrollIntoView());
    const box = (await page.locator('#tl-draw').boundingBox())!;
    await page.evaluate('globalThis.timeline.reset()');
    // Time of the page's own thread: what other programs of a busy machine take is not the page's.
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
    const spent = async (): Promise<number> =>
      (await cdp.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'ScriptDuration')!.value * 1000;
    const drawn = (): Promise<number> => page.evaluate('globalThis.timeline.stats().frames');
    await page.mouse.move(box.x + 600, box.y + 160);
    await page.keyboard.down('Control');
    const took: number[] = [];
    for (let i = 0; i < 60; i++) {
      const [frames, before] = [await drawn(), await spent()];
      await page.mouse.wheel(0, i < 40 ? -60 : 80);
      for (let tries = 0; tries < 100 && (await drawn()) === frames; tries++) await page.waitForTimeout(4);
      took.push((await spent()) - before);
    }
    await page.keyboard.up('Control');
    const { rects, frames } = await page.evaluate<{ rects: number; frames: number }>('globalThis.timeline.stats()');
    const sorted = took.sort((a, b) => a - b);
    console.log(
      `${frames} frames, median ${sorted[sorted.length >> 1]?.toFixed(1)} ms, worst ${sorted.at(-1)?.toFixed(1)} ms of its own time`,
    );
    expect(frames).toBeGreaterThan(50);
    expect(rects).toBeLessThanOrEqual(10_000);
    expect(sorted[sorted.length >> 1]).toBeLessThanOrEqual(16);
    expect(sorted.at(-1)).toBeLessThanOrEqual(50);
    await page.close();
  });
});
