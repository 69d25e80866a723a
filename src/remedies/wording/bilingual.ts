import { fill } from '../../base/phrase.ts';
import type { L10n, ParamValue } from '../../model/lang.ts';

/** A text in both languages, written side by side. */
export function both(en: string, zh: string): L10n {
  return { en, zh };
}

/** Sentences in order; what does not apply is null and is left out. */
export function prose(...sentences: readonly (L10n | null)[]): L10n {
  const said = sentences.filter((sentence) => sentence !== null);
  return { en: said.map((sentence) => sentence.en).join(' '), zh: said.map((sentence) => sentence.zh).join('') };
}

/** Sentences that apply, as a list. */
export function listed(...sentences: readonly (L10n | null)[]): L10n[] {
  return sentences.filter((sentence) => sentence !== null);
}

/** Fills the placeholders of both languages. Strings from a profile or a repository must use `code`. */
export function filled(text: L10n, params: Readonly<Record<string, ParamValue>>): L10n {
  return { en: fill(text, params, 'en'), zh: fill(text, params, 'zh') };
}
