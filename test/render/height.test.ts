import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LANGS, type Lang } from '../../src/model/lang.ts';
import { renderComment } from '../../src/render/comment.ts';
import type { ReportComment } from '../../src/render/views.ts';
import { commentPage } from './page.ts';
import { caseA, caseB, caseC, caseD, caseE, caseF } from './reports.ts';

const CHROMIUM = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';
const SHOTS = process.env.RENDER_SHOTS;

describe.skipIf(!existsSync(CHROMIUM))('a comment on the page', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  });
  afterAll(async () => {
    await browser?.close();
  });

  /** Texts longer than a rule should write. */
  const long = (lang: Lang): ReportComment => {
    const a = caseA(lang);
    const words =
      lang === 'en'
        ? 'Set `HCCL_OP_EXPANSION_MODE=AIV` and keep the micro batch as it is, '
        : '设置 `HCCL_OP_EXPANSION_MODE=AIV` 并保持 micro batch 不变，';
    const findings = a.report.findings.map((of) => ({
      ...of,
      title: `${of.title}, ${of.title}, ${of.title}`,
      locations: [
        { file: 'megatron/core/models/common/embeddings/language_module.py', line: 1234, symbol: null, provenBy: 'call-stack' as const },
      ],
      recommendations: of.recommendations.map((change) => ({ ...change, title: words.repeat(5) })),
    }));
    const gate = { outcome: 'fail' as const, because: findings.map(({ title }) => `${title}: high`) };
    return { ...a, report: { ...a.report, findings, gate } };
  };

  const cases = { a: caseA, b: caseB, c: caseC, d: caseD, e: caseE, f: caseF };
  const all = Object.entries(cases).flatMap(([name, make]) => LANGS.map((lang) => ({ name, lang, make })));

  it.each(LANGS)('stays readable with the longest texts (%s)', async (lang) => {
    const page = await browser.newPage({ viewport: { width: 860, height: 800 } });
    await page.setContent(commentPage(renderComment(long(lang))));
    const article = page.locator('article');
    const { height } = (await article.boundingBox())!;
    if (SHOTS !== undefined) await article.screenshot({ path: `${SHOTS}/long.${lang}.png` });
    const overflow = await page.evaluate('document.documentElement.scrollWidth');
    await page.close();
    if (SHOTS !== undefined) console.log('long', lang, height, overflow);
    expect(height).toBeLessThanOrEqual(700);
    expect(overflow).toBeLessThanOrEqual(860);
  });

  it.each(all)('case $name ($lang) takes at most 480 px closed and 700 px open', async ({ name, lang, make }) => {
    const page = await browser.newPage({ viewport: { width: 860, height: 800 } });
    await page.setContent(commentPage(renderComment(make(lang))));
    const article = page.locator('article');
    const closed = (await article.boundingBox())!.height;
    if (SHOTS !== undefined) await article.screenshot({ path: `${SHOTS}/${name}.${lang}.png` });
    await page.evaluate('for (const d of document.querySelectorAll("details")) d.open = true');
    const open = (await article.boundingBox())!.height;
    if (SHOTS !== undefined) await article.screenshot({ path: `${SHOTS}/${name}.${lang}.open.png` });
    await page.close();
    if (SHOTS !== undefined) console.log(name, lang, closed, open);
    expect(closed).toBeLessThanOrEqual(480);
    expect(open).toBeLessThanOrEqual(700);
  });
});
