import { AdviseError } from '../base/errors.ts';
import type { L10n } from '../model/lang.ts';

const WHAT = {
  format: { en: 'format', zh: '格式' },
  language: { en: 'language', zh: '语言' },
} as const satisfies Readonly<Record<string, L10n>>;

/** A value that an option does not take. */
export function notKnown(what: keyof typeof WHAT, value: string, allowed: readonly string[]): AdviseError {
  return new AdviseError(
    'usage',
    { en: `${WHAT[what].en} "${value}" is not known`, zh: `没有名为「${value}」的${WHAT[what].zh}` },
    { en: `Use one of: ${allowed.join(', ')}.`, zh: `可用的值：${allowed.join('、')}。` },
  );
}
