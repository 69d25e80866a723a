/**
 * Times as they are printed. One quantity has one string, wherever it appears: comment, check run, review, terminal, gate.
 * Steps keep three significant digits; savings are estimates and get whole milliseconds from 10 ms.
 */

const NBSP = '\u00a0';

export type Unit = 's' | 'ms' | 'µs';

const PER_MS: Readonly<Record<Unit, number>> = { s: 1 / 1000, ms: 1, µs: 1000 };

function unitOf(ms: number): Unit {
  const abs = Math.abs(ms);
  if (abs >= 9_999.5) return 's';
  return abs === 0 || abs >= 0.0995 ? 'ms' : 'µs';
}

export function withThousands(fixed: string): string {
  return fixed.replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ',');
}

export function inUnit(ms: number, unit: Unit, decimals: number): string {
  return withThousands((Math.abs(ms) * PER_MS[unit]).toFixed(decimals));
}

/** Decimals that leave `significant` digits, at most `most`. */
function decimalsFor(value: number, significant: number, most: number): number {
  for (let decimals = most; decimals > 0; decimals--) {
    const digits = value
      .toFixed(decimals)
      .replace(/^0?\.?0*/, '')
      .replace('.', '').length;
    if (digits <= significant) return decimals;
  }
  return 0;
}

function figure(ms: number, significant: number): string {
  const unit = unitOf(ms);
  const value = Math.abs(ms) * PER_MS[unit];
  const decimals = unit === 'µs' || value === 0 ? 0 : decimalsFor(value, significant, unit === 's' ? 1 : 2);
  return `${ms < 0 ? '−' : ''}${inUnit(ms, unit, decimals)}${NBSP}${unit}`;
}

/** A measured time: `812 ms`, `40.6 ms`, `12.0 s`. */
export function formatTime(ms: number): string {
  return figure(ms, 3);
}

/** An estimated time: `94 ms`, `9.4 ms`, `0.62 ms`. */
export function formatEstimate(ms: number): string {
  return figure(ms, 2);
}

/** The English article a spoken number needs: "an 812 ms step", "a 741 ms step". */
export function articleFor(figureText: string): 'a' | 'an' {
  const whole = /^\d[\d,]*/.exec(figureText)?.[0] ?? '';
  return whole.startsWith('8') || /^(11|18)(,|$)/.test(whole) ? 'an' : 'a';
}
