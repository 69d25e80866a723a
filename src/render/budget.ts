import type { Section } from './templates.ts';

/** GitHub takes 65,536 characters in a comment and 65,535 in a check; the rest is room for its own counting. */
export const BODY_BUDGET = 60_000;

/**
 * Joins sections within a budget. What does not fit is left out as whole sections, last first; a table too long for the
 * budget loses rows. `pinned` sections (a footer, the checks) stay at the end unless they fill half the budget
 * themselves. `note` says what was cut.
 */
export function fitSections(
  sections: readonly Section[],
  budget: number,
  note: (cut: readonly string[]) => string,
  pinned: readonly string[] = [],
): string {
  const join = (parts: readonly string[]): string => parts.filter((part) => part !== '').join('\n\n');
  const whole = join(sections.map(({ text }) => text));
  if (whole.length <= budget) return whole;

  const pins = new Set(pinned);
  const textsOf = (names: ReadonlySet<string>): string[] => sections.filter(({ name }) => names.has(name)).map(({ text }) => text);
  for (const name of pinned.toReversed()) if (join(textsOf(pins)).length > budget / 2) pins.delete(name);
  const body = sections.filter(({ name }) => !pins.has(name));
  const tail = textsOf(pins);
  const kept: string[] = [];
  const cut: string[] = [];
  for (const [i, section] of body.entries()) {
    // room for the note as if everything after this were cut
    const rest = note([...new Set(body.slice(i).map(({ name }) => name))]);
    const fits = (text: string): boolean => join([...kept, text, rest, ...tail]).length <= budget;
    if (cut.length === 0 && fits(section.text)) {
      kept.push(section.text);
      continue;
    }
    if (cut.length === 0) {
      const part = cutRows(section.text, fits);
      if (part !== null) kept.push(part);
    }
    if (!cut.includes(section.name)) cut.push(section.name);
  }
  return join([...kept, note(cut), ...tail]);
}

/** The longest run of whole lines of a table that fits. null: no table, or not even a few rows fit. */
function cutRows(text: string, fits: (text: string) => boolean): string | null {
  const lines = text.split('\n');
  const first = lines.findIndex((line) => line.startsWith('|'));
  if (first < 0 || !lines.slice(first).every((line) => line.startsWith('|'))) return null;
  let low = first + 2;
  let high = lines.length - 1;
  if (!fits(lines.slice(0, low + 1).join('\n'))) return null;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(lines.slice(0, middle).join('\n'))) low = middle;
    else high = middle - 1;
  }
  return low > first + 2 ? lines.slice(0, low).join('\n') : null;
}
