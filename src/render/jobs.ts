import type { Lang } from '../model/lang.ts';
import { BODY_BUDGET } from './budget.ts';
import { renderCheck } from './check.ts';
import { commentMarker, heading, renderSummary, standingOf, stateLine, token } from './comment.ts';
import { cell, clamp, cleanLine, code, joinMarkdown, link, markdown, prose, SafeMarkdown } from './escape.ts';
import { countForm, type Shape } from './standing.ts';
import type { CheckAnnotation, CheckConclusion, CommentView, JobsComment, RenderedCheck } from './views.ts';
import { word } from './words.ts';

/** Several training jobs of one repository in one comment and one check: the worst first, the quiet ones folded. */

const WORST_FIRST: readonly Shape[] = ['❌', '⚠️', '❔', '⏳', '✅'];
const CONCLUSIONS_WORST_FIRST: readonly CheckConclusion[] = ['failure', 'action_required', 'neutral', 'skipped', 'success'];
const TITLE_MAX = 70;
/** Room for the table of the jobs, the heading and the lines between. */
const FRAME = 6000;

interface Standing {
  readonly name: string;
  readonly view: CommentView;
  readonly shape: Shape;
  readonly text: string;
}

function standings({ jobs }: JobsComment): Standing[] {
  const standing = jobs.map(({ name, view }) => ({ name, view, ...standingOf(view) }));
  return standing.sort((a, b) => WORST_FIRST.indexOf(a.shape) - WORST_FIRST.indexOf(b.shape));
}

function wantsALook({ shape }: Standing): boolean {
  return shape !== '✅';
}

function frame(view: JobsComment, all: readonly Standing[]): SafeMarkdown[] {
  const { lang } = view;
  const looks = all.filter(wantsALook).length;
  const text = word(looks === 0 ? 'heading.jobs.quiet' : `heading.jobs.${countForm(looks)}`, lang, { n: looks, all: all.length });
  const rows = all.map(({ name, shape, text: verdict }) => markdown`| ${code(name)} | ${new SafeMarkdown(shape)} ${cell(verdict)} |`);
  const head = [markdown`| ${prose(word('jobs.job', lang))} | ${prose(word('jobs.verdict', lang))} |`, markdown`|---|---|`];
  const parts = [markdown`### ${heading(all[0]?.shape ?? '✅', text, lang)}`, joinMarkdown([...head, ...rows], '\n')];
  if (view.untouched.length > 0) parts.push(prose(word('jobs.untouched', lang, { names: view.untouched })));
  return parts;
}

/** What is said of one job, without its first line: that one stands in the heading. */
function bodyOf(view: CommentView, budget: number): string {
  return renderSummary(view, budget)
    .replace(/^### [^\n]*\n/, '')
    .trim();
}

function section({ name, view, shape, text }: Standing, budget: number): string {
  const body = bodyOf(view, budget);
  const title = markdown`${code(name)} · ${new SafeMarkdown(shape)} ${prose(text)}`;
  if (shape !== '✅') return `#### ${title}\n\n${body}`;
  const summary = clamp(cleanLine(name), 80).replace(/[&<>]/g, '');
  return `<details><summary>${summary} ${shape}</summary>\n\n${body}\n\n</details>`;
}

/** The sticky comment of a repository with several jobs, without its two machine-readable lines. */
export function renderJobsSummary(view: JobsComment): string {
  const all = standings(view);
  const budget = Math.floor((BODY_BUDGET - FRAME) / Math.max(1, all.length));
  const full =
    view.links.report === null ? [] : [String(markdown`<sub>${link(prose(word('footer.report', view.lang)), view.links.report)}</sub>`)];
  return `${[...frame(view, all).map(String), ...all.map((one) => section(one, budget)), ...full].join('\n\n')}\n`;
}

/** The sticky comment of a repository with several jobs. */
export function renderJobsComment(view: JobsComment): string {
  const findings = view.jobs.flatMap(({ view: of }) => (of.state === 'report' ? of.report.findings.map(({ id }) => token(id)) : []));
  const state = stateLine({
    sha: token(view.sha),
    report: token(view.reportHash),
    lang: view.lang,
    findings: findings.slice(0, 60).join(','),
    jobs: view.jobs.map(({ name }) => token(name)).join(','),
  });
  return `${commentMarker(view.appSlug, view.pr)}\n${state}\n${renderJobsSummary(view)}`;
}

/** The check run of a repository with several jobs: as bad as the worst of them. */
export function renderJobsCheck(view: JobsComment, annotatable: (path: string, line: number) => boolean): RenderedCheck {
  const budget = Math.floor(BODY_BUDGET / Math.max(1, view.jobs.length)) - 200;
  const checks = standings(view).map(({ name, view: comment }) => ({ name, check: renderCheck({ comment, annotatable }, budget) }));
  const [worst] = checks;
  const looks = standings(view).filter(wantsALook).length;
  const first = worst === undefined ? '' : `${worst.name}: ${worst.check.title}`;
  const title = looks > 1 ? word('check.jobs.more', view.lang, { x: first, n: looks - 1 }) : first;
  const conclusions = checks.map(({ check }) => check.conclusion ?? 'neutral');
  return {
    status: 'completed',
    conclusion: CONCLUSIONS_WORST_FIRST.find((one) => conclusions.includes(one)) ?? 'neutral',
    title: clamp(title, TITLE_MAX),
    summary: renderJobsSummary(view),
    text: checks
      .filter(({ check }) => check.text !== '')
      .map(({ name, check }) => `## ${code(name)}\n\n${check.text}`)
      .join('\n\n'),
    annotations: checks.flatMap(({ name, check }) => check.annotations.map((annotation) => named(annotation, name))),
  };
}

function named(annotation: CheckAnnotation, name: string): CheckAnnotation {
  return { ...annotation, title: clamp(`${name}: ${annotation.title}`, 240) };
}

/** The check of a pull request that changes no job. */
export function renderUntouched(names: readonly string[], lang: Lang): RenderedCheck {
  return {
    status: 'completed',
    conclusion: 'neutral',
    title: word('jobs.untouched.title', lang),
    summary: String(prose(word('jobs.untouched.all', lang, { names }))),
    text: '',
    annotations: [],
  };
}
