import { z } from 'zod';
import type { Report } from '../../model/report.ts';
import { numberFindings } from '../standing.ts';
import { word } from '../words.ts';
import { html, jsonIn, type Markup, prose, text } from './markup.ts';

const Timeline = z.object({
  parts: z.array(
    z.object({
      rank: z.number().nullable(),
      step: z.number().nullable(),
      startUs: z.number(),
      lengthMs: z.number(),
      shiftMs: z.number(),
      names: z.array(z.string()),
      lanes: z.array(
        z.object({
          lane: z.enum(['device', 'communication', 'host']),
          stream: z.number().nullable(),
          count: z.number(),
          data: z.string().regex(/^[A-Za-z0-9+/]*=*$/),
        }),
      ),
    }),
  ),
  leftOut: z.object({ ranks: z.number(), steps: z.number() }),
});

/** Causes at their places in time, by rank. */
function marks(report: Report): { number: number; rank: number; fromUs: number; forUs: number; id: string }[] {
  return numberFindings(report.findings).flatMap(({ number, finding }) =>
    finding.evidence.flatMap(({ rank, startUs, durationUs }) =>
      rank === undefined || rank === null || startUs === undefined || durationUs === undefined
        ? []
        : [{ number, rank, fromUs: startUs, forUs: durationUs, id: finding.id }],
    ),
  );
}

/** What the timeline does not hold; null: it holds all, or there is none. */
export function timelineLeftOut(report: Report): string | null {
  const parsed = Timeline.shape.leftOut.safeParse((report.views.timeline as { leftOut?: unknown } | null | undefined)?.leftOut);
  if (!parsed.success || parsed.data.ranks + parsed.data.steps === 0) return null;
  return word('html.timeline.left', report.lang, parsed.data);
}

/** Tasks of the card, collectives and what held the host, of the ranks and steps worth a look. Drawn by the script of the page. */
export function timelineSection(report: Report): Markup {
  const { lang } = report;
  const title = html`<h2>${prose(word('html.timeline', lang))}</h2>`;
  const parsed = Timeline.safeParse(report.views.timeline);
  if (!parsed.success || parsed.data.parts.length === 0)
    return html`<section id="timeline">${title}<p class="none">${prose(word('html.timeline.none', lang))}</p></section>`;
  const { parts } = parsed.data;
  const left = timelineLeftOut(report);
  const names = {
    device: word('html.timeline.device', lang),
    communication: word('html.timeline.communication', lang),
    host: word('html.timeline.host', lang),
    busy: word('html.timeline.busy', lang),
    causes: word('detail.findings', lang),
    rank: word('html.timeline.rank', lang),
    step: word('column.step', lang),
    union: word('html.timeline.union', lang),
    sum: word('html.timeline.sum', lang),
    span: word('html.timeline.span', lang),
    idle: word('time.idle', lang),
    computing: word('time.computing', lang),
    exposed: word('time.exposed', lang),
    slices: word('html.timeline.slices', lang),
    broken: word('html.timeline.broken', lang),
    name: word('html.timeline.name', lang),
    count: word('html.timeline.count', lang),
    total: word('html.timeline.total', lang),
    mean: word('html.timeline.mean', lang),
    longest: word('html.timeline.longest', lang),
    pinned: word('html.timeline.pinned', lang),
    cut: word('html.timeline.cut', lang, { n: '{n}', all: '{all}' }),
  };
  const steps = [...new Set(parts.map((p) => p.step))];
  const options = steps.map((step, i) => html`<option value="${i}">${prose(names.step)} ${step === null ? text('–') : step}</option>`);
  return html`<section id="timeline">${title}
<p class="none noscript">${prose(word('html.timeline.scripts', lang))}</p>
<div id="tl" hidden>
<p><label>${prose(names.step)} <select id="tl-step">${options}</select></label>
<button type="button" data-key="w">+</button> <button type="button" data-key="s">−</button> <button type="button" data-key="a">←</button> <button type="button" data-key="d">→</button> <button type="button" data-key="0">0</button> <button type="button" data-key="Backspace">${prose(word('html.timeline.undo', lang))}</button> <button type="button" data-key="p">${prose(word('html.timeline.pin', lang))}</button> <span class="dim">${prose(word('html.help', lang))}${text(lang === 'en' ? ': ' : '：')}<kbd lang="en">?</kbd></span></p>
<div id="tl-map" role="group" aria-label="${text(word('html.timeline.map', lang))}"><canvas id="tl-map-draw" aria-hidden="true"></canvas><span id="tl-from" class="handle" role="slider" tabindex="0" aria-label="${text(word('html.timeline.from', lang))}"></span><span id="tl-to" class="handle" role="slider" tabindex="0" aria-label="${text(word('html.timeline.to', lang))}"></span></div>
<div id="tl-box"><canvas id="tl-draw" role="application" tabindex="0" aria-label="${text(word('html.timeline', lang))}" aria-describedby="tl-live"></canvas><canvas id="tl-over" aria-hidden="true"></canvas></div>
<p id="tl-live" role="status" aria-live="polite"></p><div id="tl-panel"></div>
</div>
${left === null ? null : html`<p class="dim">${prose(left)}</p>`}
<script type="application/json" id="tl-data">${jsonIn({ parts, steps, marks: marks(report), words: names })}</script>
</section>`;
}
