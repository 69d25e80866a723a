import type { Report } from '../model/report.ts';
import { detailSections, LOCAL_PLACES } from './details.ts';
import { code, markdown, prose, type SafeMarkdown } from './escape.ts';
import { barCells, barLegend, sentence, stepBar, verdictSentence } from './standing.ts';
import { word } from './words.ts';

/** The full report as Markdown, for `--format md`: verdict, step, causes, checks, inputs. */
export function renderMarkdown(report: Report): string {
  const { lang } = report;
  const bar = stepBar(report);
  const head = [
    markdown`# ${prose(verdictSentence(report))}`,
    prose(sentence(report.verdict.text, lang)),
    ...(bar === null ? [] : [markdown`${code(barCells(bar))} ${prose(barLegend(bar, lang))}`]),
    ...gateMarkdown(report),
  ];
  const tool = prose(word('detail.tool', lang, { version: report.tool.version }));
  return `${[...head, ...detailSections(report, LOCAL_PLACES).map(({ text }) => text), markdown`<sub>${tool}</sub>`].map(String).join('\n\n')}\n`;
}

function gateMarkdown(report: Report): SafeMarkdown[] {
  const { gate, lang } = report;
  if (gate === null) return [];
  const reasons = gate.because.map((reason) => sentence(reason, lang)).join(lang === 'en' ? ' ' : '');
  return [markdown`**${prose(word(`gate.${gate.outcome}`, lang))}** ${prose(reasons, 4000)}`];
}
