import { type PassSummary, passSummaries } from '../facts/job/segments.ts';
import type { RankFacts, SegmentFacts } from '../model/facts.ts';
import type { L10n, Message } from '../model/lang.ts';

const FOUND: Record<SegmentFacts['basis'], L10n> = {
  annotation: { en: 'told by their annotations', zh: '由标注得出' },
  'graph-replay': { en: 'told by graph replays', zh: '由图重放得出' },
  'layer-pattern': { en: 'told by kernels that repeat', zh: '由重复的 kernel 得出' },
  folder: { en: 'told by the folder', zh: '由目录名得出' },
};

const KIND: Readonly<Record<string, L10n>> = {
  prefill: { en: 'prefill', zh: 'prefill' },
  decode: { en: 'decode', zh: 'decode' },
  mixed: { en: 'prefill and decode together', zh: 'prefill 与 decode 混合' },
};
const UNKNOWN_KIND: L10n = { en: 'kind unknown', zh: '类型未知' };

/** How long a forward pass takes, kind by kind, where a capture has no steps. */
export function segmentNotes(ranks: readonly RankFacts[]): Message[] {
  const summaries = passSummaries(ranks);
  const notes = summaries.map((s) => passNote(s, summaries.length > 1 || s.kind !== null));
  const phases = [...new Set(ranks.flatMap((r) => r.segments.filter((s) => s.unit === 'phase').map((s) => s.kind ?? '')))];
  if (phases.length > 0) {
    const text: L10n = {
      en: 'The folder says that this is one part of a larger program: {phase:code}. Other parts are not in these figures.',
      zh: '目录名表明这是更大程序的一部分：{phase:code}。其他部分不计入这些数字。',
    };
    notes.push({ text, params: { phase: phases } });
  }
  return notes;
}

function passNote(summary: PassSummary, named: boolean): Message {
  const kind = (summary.kind === null ? undefined : KIND[summary.kind]) ?? UNKNOWN_KIND;
  const found = FOUND[summary.basis];
  const label = (lang: 'en' | 'zh'): string => (named ? (lang === 'en' ? ` (${kind.en})` : `（${kind.zh}）`) : '');
  const distance = Number.isNaN(summary.distanceMs)
    ? { en: '', zh: '' }
    : { en: ', one every {distance:ms}', zh: '，每 {distance:ms} 一次' };
  return {
    text: {
      en: `Forward pass${label('en')}: {duration:ms}, median of {n:int}${distance.en}; the device is busy for {busy:pct} of it. The passes are ${found.en}.`,
      zh: `前向${label('zh')}：{duration:ms}，{n:int} 次的中位数${distance.zh}；其中设备忙 {busy:pct}。${found.zh}。`,
    },
    params: { duration: summary.durationMs, n: summary.count, distance: summary.distanceMs, busy: summary.busyShare },
  };
}

/** Added to the basis of the step time: what the span holds. */
export function spanHolds(ranks: readonly RankFacts[]): L10n | null {
  const count = passSummaries(ranks).reduce((sum, s) => sum + s.count, 0);
  if (count === 0) return null;
  return { en: `it holds ${count} forward passes`, zh: `其中有 ${count} 次前向` };
}
