import type { L10n, Message } from '../model/lang.ts';

/**
 * Rows of a timeline (tasks, operators, calls) that are kept of one rank: about 10 large steps, some 300 MB while its facts are made.
 * A longer capture is used up to the instant at which they are full, in whole steps.
 */
export const MAX_TIMELINE_ROWS = 1_200_000;

/** What is kept of a timeline that is too long: its beginning. */
export interface Sample {
  readonly rows: number;
  readonly allRows: number;
  /** Time from the first row to the last one, kept and in all. */
  readonly ns: number;
  readonly allNs: number;
}

const STEPS: L10n = {
  en: 'is too long to keep whole: a sample is used, the first {kept:int} of its {all:int} steps ({rows:int} of {allRows:int} rows, {rate:pct}; {ms:ms} of {allMs:ms}); a capture of 10 steps says as much',
  zh: '过长，无法完整保留：使用一个样本，即其 {all:int} 个迭代中的前 {kept:int} 个（{allRows:int} 行中的 {rows:int} 行，{rate:pct}；{allMs:ms} 中的 {ms:ms}）；采集 10 个迭代即可',
};
const SPAN: L10n = {
  en: 'is too long to keep whole: a sample is used, its first {ms:ms} of {allMs:ms} ({rows:int} of {allRows:int} rows, {rate:pct}); capture a shorter window, without Python stacks',
  zh: '过长，无法完整保留：使用一个样本，即 {allMs:ms} 中的前 {ms:ms}（{allRows:int} 行中的 {rows:int} 行，{rate:pct}）；缩短采集窗口，并关闭 Python 调用栈',
};

/** A table that no capture fills. */
export const LAST_ROW: L10n = { en: 'the last row is cut off', zh: '最后一行不完整' };
export const FIRST_ROWS: L10n = { en: 'only its first {rows:int} rows are used', zh: '只使用其前 {rows:int} 行' };

/** Says what of the file is used: how many rows, at which rate, and the time they cover. */
export function sampleNote(steps: { readonly kept: number; readonly all: number }, sample: Sample): Message {
  const { rows, allRows, ns, allNs } = sample;
  const rate = allRows > 0 ? rows / allRows : 0;
  return { text: steps.all > 0 ? STEPS : SPAN, params: { ...steps, rows, allRows, rate, ms: ns / 1e6, allMs: allNs / 1e6 } };
}
