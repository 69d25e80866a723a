import { z } from 'zod';
import { IDLE_CAUSES, type IdleCause } from '../../model/facts.ts';
import type { Report } from '../../model/report.ts';
import { formatColumnMs, formatPercent, formatTime } from '../figures.ts';
import { paceRow } from '../standing.ts';
import { word } from '../words.ts';
import { figure, type Kind, table } from './figure.ts';
import { at, html, type Markup, prose, text, toFinding } from './markup.ts';

const IdleRows = z.array(
  z.object({
    rank: z.number().nullable(),
    step: z.number().nullable(),
    cause: z.enum(IDLE_CAUSES),
    ms: z.number(),
    gaps: z.number(),
    findingId: z.string().nullable(),
  }),
);
type IdleRow = z.infer<typeof IdleRows>[number];

/** The rows of the idle account; none when the report carries no account. */
export function idleRows(report: Report): IdleRow[] {
  const parsed = IdleRows.safeParse(report.views.idleAccount);
  return parsed.success ? parsed.data : [];
}

const KINDS: Readonly<Record<IdleCause, Kind>> = {
  gc: 'host',
  compile: 'host',
  allocator: 'host',
  copy: 'layout',
  sync: 'waiting',
  loader: 'data',
  preparation: 'data',
  launch: 'host',
  collective: 'waiting',
  dependency: 'waiting',
  unexplained: 'idle',
};

export function kindOfIdle(cause: IdleCause): Kind {
  return KINDS[cause];
}

const Gaps = z.array(z.object({ upToUs: z.number().nullable(), cause: z.enum(IDLE_CAUSES), ms: z.number() }));

/** Rows of one rank and step as bars that follow each other and end at the idle time. */
function waterfall(rows: readonly IdleRow[], total: number): Markup {
  let from = 0;
  return html`<div class="falls">${rows.map((row) => {
    const left = from;
    from += row.ms;
    return html`<span class="k-${text(kindOfIdle(row.cause))}" style="margin-left:${text(((left / total) * 100).toFixed(3))}%;width:${text(((row.ms / total) * 100).toFixed(3))}%"></span>`;
  })}</div>`;
}

function limit(us: number | null): string {
  return us === null ? '> 1 s' : `≤ ${formatTime(us / 1000)}`;
}

/** Idle time by the length of its gaps: ten long ones or ten thousand short ones. */
function histogram(report: Report): Markup | null {
  const { lang } = report;
  const parsed = Gaps.safeParse(report.views.gapHistogram);
  if (!parsed.success || parsed.data.length === 0) return null;
  const classes = [...Map.groupBy(parsed.data, (row) => row.upToUs)].sort(([a], [b]) => (a ?? Infinity) - (b ?? Infinity));
  const sums = classes.map(([, rows]) => rows.reduce((sum, { ms }) => sum + ms, 0));
  const most = Math.max(...sums);
  const picture = html`<div class="columns" aria-hidden="true">${classes.map(
    ([upTo, rows]) =>
      html`<div><div class="stack">${[...rows]
        .sort((a, b) => b.ms - a.ms)
        .map(
          (row) =>
            html`<i class="k-${text(kindOfIdle(row.cause))}" style="height:${text(((row.ms / most) * 100).toFixed(2))}%" title="${text(`${word(`idle.${row.cause}`, lang)} ${formatTime(row.ms)}`)}"></i>`,
        )}</div><span>${text(limit(upTo))}</span></div>`,
  )}</div>`;
  const numbers = table(
    [{ title: word('html.gap.length', lang) }, { title: 'ms', figures: true }, { title: word('html.gap.main', lang) }],
    classes.map(([upTo, rows], i) => {
      const main = rows.reduce((a, b) => (b.ms > a.ms ? b : a));
      return [limit(upTo), formatColumnMs(sums[i]!), word(`idle.${main.cause}`, lang)];
    }),
    'folded',
  );
  return figure('gaps', word('html.gap.caption', lang), picture, numbers);
}

/** Of every idle millisecond of the pace-setting rank, who owns it. */
export function idleSection(report: Report): Markup {
  const { lang } = report;
  const row = paceRow(report);
  const rows = idleRows(report)
    .filter((r) => row !== null && r.rank === row.rank && r.step === row.step)
    .sort((a, b) => Number(a.cause === 'unexplained') - Number(b.cause === 'unexplained') || b.ms - a.ms);
  const total = rows.reduce((sum, { ms }) => sum + ms, 0);
  if (row === null || total <= 0)
    return html`<section id="idle"><h2>${prose(word('html.idle', lang))}</h2><p class="none">${prose(word('html.idle.none', lang))}</p></section>`;
  const sum = `${formatColumnMs(at(total))} = ${rows.map(({ ms }) => formatColumnMs(ms)).join(' + ')} ms`;
  const numbers = table(
    [
      { title: word('html.idle.owner', lang) },
      { title: 'ms', figures: true },
      { title: word('html.share', lang), figures: true },
      { title: word('html.gaps', lang), figures: true },
    ],
    rows.map((r) => [
      html`<i class="k-${text(kindOfIdle(r.cause))} key"></i>${prose(word(`idle.${r.cause}`, lang))}${r.findingId === null ? null : html` <a href="${toFinding(r.findingId)}">${prose(word('html.finding', lang))}</a>`}`,
      formatColumnMs(r.ms),
      formatPercent(r.ms / total, lang),
      r.gaps.toLocaleString('en-US'),
    ]),
  );
  const caption = word('html.idle.caption', lang, {
    idle: formatTime(total),
    rank: row.rank === null ? '?' : String(row.rank),
    step: row.step === null ? '–' : String(row.step),
  });
  return html`<section id="idle"><h2>${prose(word('html.idle', lang))}</h2>${figure('idle-account', caption, waterfall(rows, total), numbers)}<p class="dim">${text(sum, 600)}</p>${histogram(report)}</section>`;
}
