import type { L10n } from '../model/lang.ts';

/**
 * Rows of a timeline (tasks, operators, calls) that are kept of one rank: about 10 large steps, some 300 MB while its facts are made.
 * A longer capture is used up to the instant at which they are full, in whole steps.
 */
export const MAX_TIMELINE_ROWS = 1_500_000;

export const TOO_LONG: L10n = {
  en: 'is too long to keep whole: the first {kept:int} of its {all:int} steps are used; a capture of 10 steps says as much',
  zh: '过长，无法完整保留：只使用其 {all:int} 个迭代中的前 {kept:int} 个；采集 10 个迭代即可',
};
