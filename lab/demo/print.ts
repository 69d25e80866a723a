/** The answer of the App as text for a terminal. */
import type { PullView, Violation } from '../loopback-github/index.ts';

const RULE = '─'.repeat(80);

/** Markdown without what only a browser can use: marker comments, link targets, tags of fold-outs, invisible joiners. */
export function readable(markdown: string): string {
  return markdown
    .replace(/<!--[\s\S]*?-->\n?/g, '')
    .replace(/<details><summary>(.*?)<\/summary>/g, '▸ $1')
    .replace(/<\/?(?:details|sub)>\n?/g, '')
    .replace(/\[((?:[^\]\\]|\\.)*)\]\([^)\s]*\)/g, '$1')
    .replace(/\\([\\`*_{}[\]()#+\-.!|<>~])/g, '$1')
    .replaceAll(/&#8288;|\u2060/g, '')
    .replaceAll('\u00a0', ' ')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

function heading(text: string): string[] {
  return ['', RULE, text, RULE];
}

/** The numbered sections of the check's details: each cause with its change as code. The tables after them are for the page. */
function causesIn(details: string): string[] {
  return details.split(/^(?=### )/m).filter((section) => /^### \d+\. /.test(section));
}

function checkLines(check: PullView['checks'][number]): string[] {
  const summary = readable(check.summary ?? '');
  return [
    ...heading(`Check run: ${check.name} · ${check.status} · ${check.conclusion ?? 'no conclusion'}`),
    `Title:   ${readable(check.title ?? '')}`,
    ...(check.actions.length > 0 ? [`Buttons: ${check.actions.map(({ label }) => label).join(', ')}`] : []),
    '',
    'Summary:',
    summary,
    ...causesIn(check.text ?? '').flatMap((cause) => ['', readable(cause)]),
    ...(check.annotations.length > 0 ? ['', 'Annotations:'] : []),
    ...check.annotations.flatMap(({ path, startLine, level, title, message }) => [
      `- ${path}:${startLine} · ${level} · ${title ?? ''}`,
      ...message.split('\n').map((text) => `    ${text}`),
    ]),
  ];
}

function reviewLines(review: PullView['reviews'][number]): string[] {
  return [
    ...heading(`Suggestions: review by ${review.author}`),
    readable(review.body),
    ...review.comments.flatMap(({ path, line, startLine, body }) => [
      '',
      `${path}:${startLine !== null && startLine !== line ? `${startLine}-` : ''}${line}`,
      ...readable(body)
        .split('\n')
        .map((text) => (text === '' ? '' : `    ${text}`)),
    ]),
  ];
}

/** Comment, check runs and suggestions of a pull request. */
export function answerText(view: PullView): string {
  const comments = view.comments.filter(({ viaApp }) => viaApp);
  return [
    `Pull request #${view.number}: ${view.title}`,
    ...comments.flatMap(({ author, body }) => [...heading(`Comment by ${author}`), readable(body)]),
    ...view.checks.flatMap(checkLines),
    ...(view.reviews.length === 0 ? [...heading('Suggestions'), 'none on lines of this diff'] : view.reviews.flatMap(reviewLines)),
    '',
  ].join('\n');
}

/** What did not fit GitHub's description or rules, one line each. */
export function violationText(violations: readonly Violation[]): string {
  return violations.map(({ side, exchange, faults }) => `violation (${side}): ${exchange}: ${faults.join('; ')}`).join('\n');
}
