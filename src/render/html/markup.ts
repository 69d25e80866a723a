import { clamp, clampProse } from '../escape.ts';

/**
 * HTML that may be written into a page. Only this file makes it: every value of a template is markup already, a number, or a list of
 * markup; a string does not type-check on purpose. Foreign names go through `text`, prose of the report through `prose`.
 */
export class Markup {
  readonly #html: string;
  constructor(html: string) {
    this.#html = html;
  }
  toString(): string {
    return this.#html;
  }
}

type Value = Markup | number | null | readonly (Markup | number | null)[];

const put = (value: Value): string => (value === null ? '' : Array.isArray(value) ? value.map(put).join('') : String(value));

export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Markup {
  return new Markup(parts.reduce((out, part, i) => out + put(values[i - 1] ?? null) + part));
}

/** Characters that change how text is read, each shown by its code. Line breaks and tabs of code survive in `code`. */
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]/g;
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function visible(value: string): string {
  return value
    .replace(LONE, '\ufffd')
    .replace(HIDDEN, (char) =>
      char === '\n' || char === '\t' ? ' ' : `⟦U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟧`,
    );
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escaped = (value: string): string => value.replace(/[&<>"']/g, (char) => ENTITIES[char]!);

/** A foreign string as text or as the value of an attribute between double quotes. */
export function text(value: string, max = 300): Markup {
  return new Markup(escaped(visible(clamp(value, max))));
}

/** Prose of the report: what stands between backticks is a literal. */
export function prose(value: string, max = 2000): Markup {
  const parts = clampProse(value, max).split('`');
  if (parts.length % 2 === 0) parts.push(`\`${parts.pop()!}`);
  return new Markup(
    parts
      .map((part, i) => (i % 2 === 0 ? escaped(visible(part)) : `<code lang="en">${escaped(visible(part))}</code>`))
      .filter((part) => part !== '')
      .join(''),
  );
}

/** Lines of code; line breaks and tabs stay. */
export function code(value: string): Markup {
  const kept = value
    .replace(/\r\n?/g, '\n')
    .split('\n')
    .map((line) => line.split('\t').map(visible).join('\t'))
    .join('\n');
  return new Markup(escaped(kept));
}

/** A number of a picture: at most two decimals, never NaN. */
export function at(value: number): number {
  return Number.isFinite(value) ? Math.round(value * 100) / 100 : 0;
}

/** JSON that cannot end the script element it stands in. */
export function jsonIn(value: unknown): Markup {
  return new Markup(
    JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
}

/** Address of a finding inside the page. */
export function toFinding(id: string): Markup {
  return new Markup(`#f=${escaped(encodeURIComponent(id.toWellFormed()))}`);
}
