/** Languages the product speaks. English and Chinese are equals: every text exists in both. */
export const LANGS = ['en', 'zh'] as const;
export type Lang = (typeof LANGS)[number];

/** One text, written side by side in both languages. */
export type L10n = Readonly<Record<Lang, string>>;

export type ParamValue = string | number | boolean | null | readonly (string | number)[];

/**
 * A text to be written later: a template in both languages and the figures that go into it.
 * Placeholders are typed: `{stall:ms}` `{share:pct}` `{ranks:ranks}` `{file:code}` `{n:int}` `{size:bytes}` `{x:text}`.
 * See `base/phrase.ts` for the list. Strings from a profile must use `code`.
 */
export interface Message {
  readonly text: L10n;
  readonly params?: Readonly<Record<string, ParamValue>>;
}
