import { AdviseError } from '../../base/errors.ts';
import type { Lang } from '../../model/lang.ts';
import type { Outcome } from './outcome.ts';

const MARKS = { ok: '✔', bad: '✘', skipped: '–' } as const;

/** Before anything is looked at, which may take a while. */
export function checkFormat(format: string): void {
  if (!['text', 'json'].includes(format))
    throw new AdviseError(
      'usage',
      { en: `there is no format ${format}`, zh: `没有名为 ${format} 的格式` },
      { en: 'Use --format text or json.', zh: '使用 --format text 或 json。' },
    );
}

/** What `npu-advise doctor` prints, and how it ends: 1 when something is wrong. */
export function renderDoctor(
  outcomes: readonly Outcome[],
  { format, lang }: { format: string; lang: Lang },
): { out: string; code: number } {
  const wrong = outcomes.filter(({ state }) => state === 'bad').length;
  const code = wrong === 0 ? 0 : 1;
  if (format === 'json') {
    const checks = outcomes.map(({ id, title, state, found, todo }) => ({
      id,
      title: title[lang],
      state,
      found: found[lang],
      todo: todo?.[lang] ?? null,
    }));
    return { out: `${JSON.stringify({ schema: 'npu-advisor.doctor/1', ok: code === 0, checks }, null, 2)}\n`, code };
  }
  const lines = outcomes.flatMap(({ title, state, found, todo }) => [
    `${MARKS[state]} ${title[lang]}${lang === 'en' ? ': ' : '：'}${found[lang]}`,
    ...(todo === null ? [] : [`  → ${todo[lang]}`]),
  ]);
  const sum =
    lang === 'en'
      ? wrong === 0
        ? 'Nothing is wrong.'
        : `${wrong} of ${outcomes.length} checks failed.`
      : wrong === 0
        ? '没有发现问题。'
        : `${outcomes.length} 项检查中 ${wrong} 项未通过。`;
  return { out: `${lines.join('\n')}\n\n${sum}\n`, code };
}
