import type { Lang } from '../model/lang.ts';
import type { Edit, Finding, Recommendation } from '../model/report.ts';
import { shortSha } from './comment.ts';
import { diffLines } from './details.ts';
import { fenced, link, markdown, prose, SafeMarkdown, suggestion } from './escape.ts';
import { formatSaving } from './figures.ts';
import { countForm, isCostly } from './standing.ts';
import type { SummaryPlace } from './views.ts';
import { word } from './words.ts';

/** The recommendation an edit belongs to. */
function recommendationOf(finding: Finding, edit: Edit): Recommendation | undefined {
  const isSame = (other: Edit): boolean =>
    other === edit || (other.file === edit.file && other.startLine === edit.startLine && other.after === edit.after);
  return finding.recommendations.find(({ edits }) => edits.some(isSame));
}

function firstLine(finding: Finding, lang: Lang): string {
  const title = finding.title.trim().replace(/[.。]$/, '');
  if (finding.saving === null || !isCostly(finding)) return word('review.first.plain', lang, { title });
  const { headline, range } = formatSaving(finding.saving.perStepMs, lang);
  const shown = range === null ? '' : lang === 'en' ? ` (${range})` : `（${range}）`;
  return word('review.first', lang, { title, saving: headline, range: shown });
}

/** True for lines another bot could take for its command, e.g. `/merge`, or that GitHub cannot take back. */
function isInert(text: string): boolean {
  return !/^[^\S\n]*\/[a-z]/im.test(text) && !/[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/.test(text);
}

/**
 * One review comment: the cause and its saving, the change, at most two preconditions, where it comes from.
 * An edit that is not provably safe, or whose text is not inert, is shown as a diff without the one-click button.
 */
export function renderReviewComment(finding: Finding, edit: Edit, lang: Lang, place: SummaryPlace | null = null): string {
  const isOneClick = edit.kind === 'suggestion' && isInert(edit.after);
  const change = isOneClick
    ? suggestion(edit.after)
    : markdown`${prose(word('review.by-hand', lang))}

${fenced(diffLines(edit.before, edit.after).join('\n'), 'diff')}`;
  const parts = [prose(firstLine(finding, lang), 500), change, holdsWhen(recommendationOf(finding, edit)?.preconditions ?? [], lang)].map(
    String,
  );
  if (place !== null) parts.push(String(fromSummary(word('review.from', lang, { n: place.number }), place.url, lang)));
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

/** At most two preconditions, as a list that says what they are. */
function holdsWhen(preconditions: readonly string[], lang: Lang): SafeMarkdown {
  if (preconditions.length === 0) return new SafeMarkdown('');
  const items = preconditions.slice(0, 2).map((text) => `- ${prose(text, 400)}`);
  const lead = `${word('detail.preconditions', lang)}${lang === 'en' ? ':' : '：'}`;
  return new SafeMarkdown(`${prose(lead)}\n\n${items.join('\n')}`);
}

function fromSummary(text: string, url: string | null, lang: Lang): SafeMarkdown {
  const summary = link(prose(word('review.summary', lang)), url);
  return lang === 'en' ? markdown`${prose(text)} ${summary}.` : markdown`${prose(text)}${summary}。`;
}

/** The text above the review's comments. */
export function renderReviewBody(count: number, sha: string, lang: Lang, summaryUrl: string | null = null): string {
  const first = prose(word(`review.body.${countForm(count)}`, lang, { n: count, sha: shortSha(sha) }));
  return `${first}${lang === 'en' ? ' ' : ''}${fromSummary(word('review.body.why', lang), summaryUrl, lang)}\n`;
}
