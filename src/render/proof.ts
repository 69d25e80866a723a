import type { Lang } from '../model/lang.ts';
import type { Location } from '../model/report.ts';
import { word } from './words.ts';

/** How far a place is proven, in a few words. */
export function proofOf({ provenBy, movedFrom, oneOf }: Location, lang: Lang): string {
  if (oneOf !== undefined) return word('proof.one-of', lang, { n: oneOf });
  if (provenBy === 'call-stack' && movedFrom !== undefined) return word('proof.moved', lang, { line: movedFrom });
  return word(`proof.${provenBy}`, lang);
}
