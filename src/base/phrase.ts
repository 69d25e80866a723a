import type { L10n, Lang, Message, ParamValue } from '../model/lang.ts';

const NBSP = '\u00a0';

/** Milliseconds for a reader: µs below 0.1 ms, one decimal up to 10 s, then seconds. Unit attached by a no-break space. */
export function formatMs(ms: number): string {
  const sign = ms < 0 ? '−' : '';
  const abs = Math.abs(ms);
  if (abs > 0 && abs < 0.1) return `${sign}${Math.max(1, Math.round(abs * 1000))}${NBSP}µs`;
  if (abs >= 10_000) return `${sign}${(abs / 1000).toFixed(1)}${NBSP}s`;
  return `${sign}${abs.toFixed(1)}${NBSP}ms`;
}

export function formatShare(share: number, lang: Lang): string {
  const percent = share * 100;
  const digits = percent > 0 && percent < 10 ? 1 : 0;
  return `${percent.toFixed(digits)}${lang === 'en' ? NBSP : ''}%`;
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)}${NBSP}${units[unit]}`;
}

/** 0,1,2,3,7 → "0–3, 7" (en) or "0～3、7" (zh). A negative number stands for an unknown rank: "?". */
export function formatRanks(ranks: readonly number[], lang: Lang): string {
  const sorted = [...new Set(ranks)].filter((r) => r >= 0).sort((a, b) => a - b);
  const runs: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let j = i;
    while (j + 1 < sorted.length && sorted[j + 1] === sorted[j]! + 1) j++;
    const dash = lang === 'en' ? '–' : '～';
    if (j - i >= 2) runs.push(`${sorted[i]}${dash}${sorted[j]}`);
    else for (let k = i; k <= j; k++) runs.push(String(sorted[k]));
    i = j + 1;
  }
  if (runs.length > 12) runs.splice(12, runs.length - 12, '…');
  if (sorted.length < new Set(ranks).size) runs.push('?');
  return runs.join(lang === 'en' ? ', ' : '、');
}

/** Characters that could change how text is read or rendered: controls, line breaks, bidi overrides, zero width. */
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** A string from a profile, a repository or a person as an inert literal between backticks, at most `max` characters. */
export function quoteLiteral(value: string, max = 120): string {
  let clean = value
    .slice(0, max * 4)
    .replace(UNSAFE, ' ')
    .replaceAll('`', 'ˋ')
    .trim();
  const points = [...clean];
  if (points.length > max) clean = `${points.slice(0, max - 1).join('')}…`;
  return `\`${clean === '' ? ' ' : clean}\``;
}

function formatParam(value: ParamValue | undefined, kind: string, lang: Lang): string {
  if (value === null || value === undefined || (typeof value === 'number' && !Number.isFinite(value))) return '?';
  switch (kind) {
    case 'ms':
      return formatMs(Number(value));
    case 'pct':
      return formatShare(Number(value), lang);
    case 'bytes':
      return formatBytes(Number(value));
    case 'int':
      return Math.round(Number(value)).toLocaleString('en-US');
    case 'num':
      return String(Math.round(Number(value) * 100) / 100);
    case 'ranks':
      return formatRanks((Array.isArray(value) ? value : [value]).map(Number), lang);
    case 'code':
      return Array.isArray(value)
        ? value.map((v) => quoteLiteral(String(v))).join(lang === 'en' ? ', ' : '、')
        : quoteLiteral(String(value));
    case 'text':
      return String(value);
    default:
      throw new Error(`unknown placeholder kind "${kind}"`);
  }
}

/** Fills a template. `{name:kind}`: ms, pct, bytes, int, num, ranks, code, text. Foreign strings must use `code`. */
export function fill(text: L10n, params: Readonly<Record<string, ParamValue>>, lang: Lang): string {
  return text[lang].replace(/\{(\w+):(\w+)\}/g, (_, name: string, kind: string) => formatParam(params[name], kind, lang));
}

export function say(message: Message, lang: Lang): string {
  return fill(message.text, message.params ?? {}, lang);
}
