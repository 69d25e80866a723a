import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Report } from '../../model/report.ts';
import { LOCAL_PLACES, type Places } from '../details.ts';
import { verdictSentence } from '../standing.ts';
import { word } from '../words.ts';
import { causesSection } from './causes.ts';
import { checksSection } from './checks.ts';
import { comparedSection } from './compared.ts';
import { idleSection } from './idle.ts';
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
const HASHES = SCRIPTS.map((script) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`).join(' ');

const POLICY = `default-src 'none'; script-src ${HASHES}; style-src 'unsafe-inline'; img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'`;

const SECTIONS = ['verdict', 'causes', 'step', 'idle', 'ranks', 'operators', 'timeline', 'comparison', 'memory', 'checks'] as const;

/** The report as one page that needs nothing else: no request leaves it, and every figure is there without scripts. */
export function renderHtml(report: Report, places: Places = LOCAL_PLACES): string {
  const { lang } = report;
  const title = `${verdictSentence(report).replaceAll('`', '')} · NPU Advisor`;
  const nav = SECTIONS.map((id) => html`<li><a href="#${text(id)}">${prose(word(`html.nav.${id}`, lang))}</a></li>`);
  const page = html`<!doctype html>
<html lang="${lang === 'zh' ? html`zh-Hans` : html`en`}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta http-equiv="Content-Security-Policy" content="${text(POLICY, 1000)}"><meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer"><title>${text(title, 300)}</title>
<style>${new Markup(STYLE)}</style></head>
<body>
<header><a class="skip" href="#verdict">${prose(word('html.skip', lang))}</a><b>NPU Advisor</b><nav aria-label="${text(word('html.nav', lang))}"><ul>${nav}</ul></nav><button type="button" id="theme" hidden>${prose(word('html.theme', lang))}</button></header>
<main>
${verdictSection(report)}
${causesSection(report, places)}
${stepSection(report)}
${idleSection(report)}
${ranksSection(report)}
${operatorsSection(report)}
${timelineSection(report)}
${comparedSection(report)}
${memorySection(report)}
${checksSection(report, places)}
</main>
<footer class="dim">${prose(word('detail.tool', lang, { version: report.tool.version }))}</footer>
${SCRIPTS.map(
  (script) => html`<script>${new Markup(script)}</script>
`,
)}</body></html>
`;
  return String(page);
}
