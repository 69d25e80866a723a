import type { RemedyContext } from '../../model/remedy.ts';

type Params = RemedyContext['params'];

/** One of a few words a rule may hand over; null when absent or another word. */
export function choice<T extends string>(params: Params, name: string, words: readonly T[]): T | null {
  const value = params[name];
  return words.find((word) => word === value) ?? null;
}

export function flag(params: Params, name: string): boolean | null {
  const value = params[name];
  return typeof value === 'boolean' ? value : null;
}

/** A whole number of at least 1; null otherwise. */
export function count(params: Params, name: string): number | null {
  const value = params[name];
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 ? value : null;
}

/** A list that a rule hands over as words joined by commas; at most `max`. */
export function words(params: Params, name: string, max = 6): string[] {
  const value = params[name];
  if (typeof value !== 'string') return [];
  return value
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
    .slice(0, max);
}
