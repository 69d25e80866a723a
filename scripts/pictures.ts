/*
 * npm run pictures   takes the pictures of the READMEs again: the comment on the demo's pull request, and the report page of the same profile,
 * in both languages. Needs Chromium (CHROMIUM_PATH).
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { startDemo } from '../lab/demo/demo.ts';
import { writeExample } from '../lab/demo/example.ts';
import { baseFiles, headFiles } from '../lab/demo/repository.ts';
import { diagnose } from '../src/cli/analyze.ts';
import { LANGS, type Lang } from '../src/model/lang.ts';
import { renderHtml } from '../src/render/html/page.ts';

const IMAGES = fileURLToPath(new URL('../docs/images/', import.meta.url));
const RANKS = 8;

const fileFor = (name: string, lang: Lang): string => join(IMAGES, lang === 'en' ? `${name}.png` : `${name}.${lang}.png`);

/** The comment as the local page shows it. */
async function pictureOfComment(browser: Browser, lang: Lang): Promise<void> {
  let address = '';
  const terminal = {
    print(text: string): void {
      address = /^Page: (\S+)/m.exec(text)?.[1] ?? address;
    },
    progress: (text: string) => console.error(`${lang}: ${text}`),
  };
  const demo = await startDemo({ path: null, once: true, port: 0, lang, ranks: RANKS }, terminal, new AbortController().signal);
  try {
    const page = await browser.newPage({ viewport: { width: 780, height: 1200 }, colorScheme: 'light' });
    await page.goto(address);
    await page
      .locator('.item', { has: page.locator('.comment-body h3', { hasText: 'NPU Advisor' }) })
      .first()
      .screenshot({ path: fileFor('pull-request', lang) });
    await page.close();
  } finally {
    await demo.close();
  }
}

/** The first screen of the report page. */
async function pictureOfReport(browser: Browser, lang: Lang, folder: string): Promise<void> {
  const report = await diagnose([join(folder, 'profile')], { source: join(folder, 'source'), lang }, lang, { timeline: true });
  const file = join(folder, `report.${lang}.html`);
  writeFileSync(file, renderHtml(report));
  const page = await browser.newPage({ viewport: { width: 1100, height: 800 }, colorScheme: 'light' });
  await page.goto(pathToFileURL(file).href);
  await page.screenshot({ path: fileFor('report', lang) });
  await page.close();
}

const folder = mkdtempSync(join(tmpdir(), 'npu-advisor-pictures-'));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  await writeExample(RANKS, join(folder, 'profile'));
  for (const [path, text] of Object.entries({ ...baseFiles('en'), ...headFiles() })) {
    mkdirSync(dirname(join(folder, 'source', path)), { recursive: true });
    writeFileSync(join(folder, 'source', path), text);
  }
  for (const lang of LANGS) {
    await pictureOfReport(browser, lang, folder);
    await pictureOfComment(browser, lang);
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
