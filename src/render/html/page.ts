import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Lang } from '../../model/lang.ts';
import type { Report } from '../../model/report.ts';
import { LOCAL_PLACES, type Places } from '../details.ts';
import { verdictSentence } from '../standing.ts';
import { word } from '../words.ts';
import { causesSection } from './causes.ts';
import { checksSection } from './checks.ts';
import { communicationSection } from './communication.ts';
import { comparedSection } from './compared.ts';
import { helpDialog } from './help.ts';
import { idleSection } from './idle.ts';
import { inputSection } from './input.ts';
import { html, Markup, prose, text } from './markup.ts';
import { memorySection } from './memory.ts';
import { operatorsSection } from './operators.ts';
import { ranksSection } from './ranks.ts';
import { stepSection } from './step.ts';
import { timelineSection } from './timeline.ts';
import { verdictSection } from './verdict.ts';

const FOLDER = new URL('../../../templates/', import.meta.url);
const STYLE = readFileSync(new URL('report.css', FOLDER), 'utf8');
const SCRIPTS = ['report-page.js', 'report-timeline.js'].map((name) => readFileSync(new URL(name, FOLDER), 'utf8'));
const hashOf = (content: string): string => `'sha256-${createHash('sha256').update(content).digest('base64')}'`;

/** Widths of bars are attributes; what else styles or runs is known by its hash. Browsers that do not tell attributes apart use `style-src`. */
export const PAGE_POLICY = `default-src 'none'; script-src ${SCRIPTS.map(hashOf).join(' ')}; style-src 'unsafe-inline'; style-src-elem ${hashOf(STYLE)}; style-src-attr 'unsafe-inline'; img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'`;

/** Where a page stands that is served and no file. */
export interface PageContext {
  readonly pr: number;
  readonly sha: string;
  /** Page of the repository that holds `sha`; null: no links to code. */
  readonly htmlBase: string | null;
  readonly fromFork: boolean;
  /** Parts that are not in the page for its size. */
  readonly leftOut: readonly ('timeline' | 'charts')[];
  /** It can be had in the other language, too. */
  readonly isInBoth?: boolean;
}

function leftOutNote(context: PageContext | null, lang: Lang): Markup | null {
  if (context === null || context.leftOut.length === 0) return null;
  const parts = context.leftOut.map((part) => word(`html.left.${part}`, lang));
  return html`<p class="none" role="note">${prose(word('html.left', lang, { parts: parts.join(lang === 'en' ? ', ' : '、') }))}</p>`;
}

function standsAt(context: PageContext | null, lang: Lang): Markup | null {
  if (context === null) return null;
  const said = [
    ...(context.fromFork ? [word('footer.fork', lang)] : []),
    word('html.served', lang, { pr: context.pr, sha: context.sha.slice(0, 7) }),
  ];
  return html` · ${prose(said.join(' · '))}`;
}

/** Script keeps the place in the page that the reader is at. */
function otherLanguage(context: PageContext | null, lang: Lang): Markup | null {
  if (context?.isInBoth !== true) return null;
  return lang === 'en'
    ? html`<a id="language" href="?lang=zh" lang="zh-Hans" hreflang="zh-Hans" rel="alternate">中文</a>`
    : html`<a id="language" href="?lang=en" lang="en" hreflang="en" rel="alternate">English</a>`;
}

const SECTIONS = [
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
] as const;

/** The report as one page that needs nothing else: no request leaves it, and every figure is there without scripts. */
export function renderHtml(report: Report, places: Places = LOCAL_PLACES, context: PageContext | null = null): string {
  const { lang } = report;
  const sha = context === null ? '' : ` · ${context.sha.slice(0, 7)}`;
  const title = `${verdictSentence(report).replaceAll('`', '')}${sha} · NPU Advisor`;
  const nav = SECTIONS.map((id) => html`<li><a href="#${text(id)}">${prose(word(`html.nav.${id}`, lang))}</a></li>`);
  const page = html`<!doctype html>
<html lang="${lang === 'zh' ? html`zh-Hans` : html`en`}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta http-equiv="Content-Security-Policy" content="${text(PAGE_POLICY, 1000)}"><meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer"><title>${text(title, 300)}</title>
<style>${new Markup(STYLE)}</style></head>
<body>
<header><a class="skip" href="#verdict">${prose(word('html.skip', lang))}</a><b>NPU Advisor</b><nav aria-label="${text(word('html.nav', lang))}"><ul>${nav}</ul></nav>${otherLanguage(context, lang)}<button type="button" id="theme" hidden>${prose(word('html.theme', lang))}</button><button type="button" id="keys" hidden aria-label="${text(word('html.help', lang))}">?</button></header>
<main>
${leftOutNote(context, lang)}${verdictSection(report)}
${causesSection(report, places)}
${stepSection(report)}
${idleSection(report)}
${ranksSection(report)}
${communicationSection(report)}
${operatorsSection(report, places)}
${inputSection(report)}
${timelineSection(report)}
${comparedSection(report)}
${memorySection(report)}
${checksSection(report, places)}
</main>
<p id="absent" role="status" data-text="${text(word('html.absent', lang, { place: '{place}' }))}"></p>
${helpDialog(lang)}
<footer class="dim">${prose(word('detail.tool', lang, { version: report.tool.version }))}${standsAt(context, lang)}</footer>
${SCRIPTS.map(
  (script) => html`<script>${new Markup(script)}</script>
`,
)}</body></html>
`;
  return String(page);
}
