import type { L10n, Lang } from '../model/lang.ts';

/** What went wrong and what to do about it, in one language. */
export interface Told {
  readonly message: string;
  readonly hint: string;
}

/** A text for people, in both languages; a plain string is the same in both, for what another program said. */
export type Said = string | L10n;

export function saidIn(said: Said, lang: Lang): string {
  return typeof said === 'string' ? said : said[lang];
}

/** An error whose hint may be shown to a user. Everything else is a defect and goes to the log only. */
export class AdviseError extends Error {
  readonly code: string;
  /** What to do, one sentence, in English as `message` is. */
  readonly hint: string;
  /** Both, in the language of whoever is told. Plain data, so that it passes from process to process. */
  readonly told: Readonly<Record<Lang, Told>>;
  constructor(code: string, message: Said, hint: Said, options?: ErrorOptions) {
    super(saidIn(message, 'en'), options);
    this.name = 'AdviseError';
    this.code = code;
    this.hint = saidIn(hint, 'en');
    const tell = (lang: Lang): Told => ({ message: saidIn(message, lang), hint: saidIn(hint, lang) });
    this.told = { en: tell('en'), zh: tell('zh') };
  }

  /** The same error again, from what was `told`. */
  static from(code: string, { en, zh }: Readonly<Record<Lang, Told>>, options?: ErrorOptions): AdviseError {
    return new AdviseError(code, { en: en.message, zh: zh.message }, { en: en.hint, zh: zh.hint }, options);
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What went wrong and what to do, for a line of a terminal or a log. */
export function inOneLine({ told }: AdviseError, lang: Lang): string {
  const { message, hint } = told[lang];
  return `${message}${lang === 'en' ? '. ' : '。'}${hint}`.replaceAll(/\s+/g, ' ');
}
