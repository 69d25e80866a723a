import type { L10n } from '../../model/lang.ts';

/** What a check found. `skipped`: it could not be looked at, the text says why. */
export interface Outcome {
  /** Stable name, for scripts. */
  readonly id: string;
  readonly title: L10n;
  readonly state: 'ok' | 'bad' | 'skipped';
  readonly found: L10n;
  /** What to do; null: nothing. */
  readonly todo: L10n | null;
}

type Found = Omit<Outcome, 'id' | 'title'>;

export const both = (en: string, zh: string): L10n => ({ en, zh });
export const ok = (found: L10n, todo: L10n | null = null): Found => ({ state: 'ok', found, todo });
export const bad = (found: L10n, todo: L10n): Found => ({ state: 'bad', found, todo });
export const skipped = (found: L10n, todo: L10n | null = null): Found => ({ state: 'skipped', found, todo });

/** Runs a check; one that throws has not told anything, and says so. */
export async function look(id: string, title: L10n, body: () => Found | Promise<Found>): Promise<Outcome> {
  try {
    return { id, title, ...(await body()) };
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    const what = typeof code === 'string' && /^[A-Z0-9_]{3,40}$/.test(code) ? code : error instanceof Error ? error.name : 'error';
    return {
      id,
      title,
      ...bad(
        both(`could not be checked (${what})`, `无法检查（${what}）`),
        both('Run it again, and report this if it stays.', '请重试；若仍出现，请反馈。'),
      ),
    };
  }
}
