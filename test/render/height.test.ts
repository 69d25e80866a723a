import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LANGS } from '../../src/model/lang.ts';
import { renderComment } from '../../src/render/comment.ts';
import { commentPage } from './page.ts';
import { caseA, caseC, caseD, caseE } from './reports.ts';

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

  const cases = { a: caseA, c: caseC, d: caseD, e: caseE };
  const all = Object.entries(cases).flatMap(([name, make]) => LANGS.map((lang) => ({ name, lang, make })));

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
