/**
 * From foreign text to Markdown that says exactly that text: no mention, no reference, no link, no element, no table border.
 * GitHub looks for mentions and references after Markdown is rendered, so escaping a character is not enough there;
 * a zero-width space (`&#8203;`) between the sign and the name is.
 */
import { withoutTrailing } from '../base/endings.ts';

/** Characters that change how text is read or where it goes. */
const UNSAFE = new RegExp(
  [
    '[\\u0000-\\u001f\\u007f-\\u009f]', // controls and line breaks
    '[\\u200e\\u200f\\u061c\\u202a-\\u202e\\u2066-\\u2069]', // bidi marks and overrides
    '[\\u00ad\\u115f\\u1160\\u180e\\u200b-\\u200d\\u2028\\u2029\\u202f\\u2060-\\u2065\\u206a-\\u206f\\u3164\\ufeff\\uffa0]', // invisible or line breaking
    '\\u034f|\\u17b4|\\u17b5|[\\u180b-\\u180d]', // invisible combining marks
    '[\\ufff0-\\uffff]|\\udb40[\\udc00-\\udfff]', // specials, tag characters
    '[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]', // lone surrogates
  ].join('|'),
  'g',
);

/** Markdown that is already safe. Made by this module only; `{{raw}}` in a template accepts nothing else. */
export class SafeMarkdown {
  readonly #text: string;
  constructor(text: string) {
    this.#text = text;
  }
  toString(): string {
    return this.#text;
  }
}

/** One line without characters that change how text is read. */
export function cleanLine(value: string): string {
  return value.replace(UNSAFE, ' ');
}

/** At most `max` characters (code points), with an ellipsis when something was cut. */
export function clamp(value: string, max: number): string {
  if (value.length <= max) return value;
  const points = [...value.slice(0, max * 2)];
  if (points.length <= max && value.length <= max * 2) return value;
  return `${points.slice(0, max - 1).join('')}…`;
}

function escapeWords(text: string): string {
  return (
    text
      .replace(/&/g, '&amp;')
      .replace(/[\\`*_[\]~]/g, '\\$&')
      .replace(/</g, '&lt;')
      .replace(/>/g, '&gt;')
      .replace(/\|/g, '&#124;')
      .replace(/\$/g, '&#36;')
      // after the entities above, or their own "#" would be taken for a reference
      .replace(/(?<!&)#(?=\w)/g, '#&#8203;')
      .replace(/@/g, '@&#8203;')
      .replace(/\b(GH)-(?=\d)/gi, '$1-&#8203;')
      .replace(/:(?=\/\/)/g, ':&#8203;')
      .replace(/\b(www|mailto|xmpp)([.:])/gi, '$1&#8203;$2')
      .replace(/:(?=[a-z+-][\w+\\-]*:)/gi, ':&#8203;')
      // a commit id would become a link
      .replace(/(?<![\w&#])[0-9a-f]{7,40}(?!\w)/gi, (sha) => sha.replace(/.{6}(?=.)/g, '$&&#8203;'))
  );
}

/** What would start a list, heading, quote, rule, fence or another bot's command at the beginning of a line. */
function escapeStart(text: string): string {
  const trimmed = text.replace(/^\s+/, '');
  if (/^[-+=/#!:]/.test(trimmed)) return `\\${trimmed}`;
  return trimmed.replace(/^(\d{1,9})([.)])(?=\s|$)/, '$1\\$2');
}

/** Longest run of backticks in a text. */
function longestRun(text: string): number {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  return longest;
}

function codeSpan(value: string, inTable: boolean): string {
  let clean = clamp(cleanLine(value).trim(), 160);
  if (clean === '') return '` `';
  // In a table a pipe ends the cell even inside code; a backslash before it would undo the escape.
  if (inTable) clean = clean.replace(/\\+(?=\|)/g, (run) => '∖'.repeat(run.length)).replaceAll('|', '\\|');
  const fence = '`'.repeat(longestRun(clean) + 1);
  const pad = clean.startsWith('`') || clean.endsWith('`') ? ' ' : '';
  return `${fence}${pad}${clean}${pad}${fence}`;
}

interface Piece {
  readonly literal: boolean;
  readonly text: string;
}

/** Splits prose at its backticks. A backtick without partner is text. */
function splitProse(prose: string): Piece[] {
  const parts = prose.split('`');
  if (parts.length % 2 === 0) {
    const last = parts.pop()!;
    parts[parts.length - 1] += `\`${last}`;
  }
  return parts.map((text, i) => ({ literal: i % 2 === 1, text })).filter((piece) => piece.text !== '');
}

/** Prose cut to `max` characters; a literal that was cut keeps its closing backtick. */
export function clampProse(text: string, max: number): string {
  const cut = clamp(text, max);
  const isOpen = cut !== text && cut.split('`').length % 2 === 0 && text.split('`').length % 2 === 1;
  return isOpen ? `${cut}\`` : cut;
}

function proseToMarkdown(prose: string, max: number, inTable: boolean): SafeMarkdown {
  const pieces = splitProse(clampProse(cleanLine(prose), max));
  const out = pieces.map(({ literal, text }) => (literal ? codeSpan(text, inTable) : escapeWords(text))).join('');
  // inside a cell nothing can start a block
  return new SafeMarkdown(inTable || pieces[0]?.literal ? out : escapeStart(out));
}

/** Prose with `literals` as Markdown. */
export function prose(text: string, max = 1000): SafeMarkdown {
  return proseToMarkdown(text, max, false);
}

/** Prose with `literals` for a table cell: no pipe survives. */
export function cell(text: string, max = 300): SafeMarkdown {
  return proseToMarkdown(text, max, true);
}

/** A foreign string as plain text, backticks included. */
export function plain(literal: string, max = 120): SafeMarkdown {
  return new SafeMarkdown(escapeStart(escapeWords(clamp(cleanLine(literal), max))));
}

/** A foreign string as an inert code span; also safe in a table cell. */
export function code(literal: string): SafeMarkdown {
  return new SafeMarkdown(codeSpan(literal, true));
}

/** A fenced block whose fence is longer than any run of backticks inside. Line breaks and tabs survive, other controls do not. */
export function fenced(text: string, info = ''): SafeMarkdown {
  const plainText = text.replace(/\r\n?/g, '\n').replace(UNSAFE, (char) => (char === '\n' || char === '\t' ? char : ' '));
  const clean = withoutTrailing(plainText, '\n');
  const fence = '`'.repeat(Math.max(3, longestRun(clean) + 1));
  return new SafeMarkdown(`${fence}${info}\n${clean}${clean === '' ? '' : '\n'}${fence}`);
}

/** True when a fenced block shows the text as it is, to the character. */
export function isShownVerbatim(text: string): boolean {
  return text.replace(UNSAFE, (char) => (char === '\n' || char === '\t' ? char : '')) === text;
}

/** The block GitHub offers to apply. Its text is kept to the character: it becomes code. */
export function suggestion(after: string): SafeMarkdown {
  const lines = after.replace(/\r\n?/g, '\n').replace(/\n$/, '');
  const fence = '`'.repeat(Math.max(3, longestRun(lines) + 1));
  return new SafeMarkdown(`${fence}suggestion\n${lines}${lines === '' ? '' : '\n'}${fence}`);
}

/** An address that may stand between the parentheses of a link, or null. */
function linkTarget(url: string | null): string | null {
  if (url === null || !/^https?:\/\/[^\s/]+/i.test(url)) return null;
  return url.replace(/[^\w\-.~:/?#@!$&'*+,;=%]/g, (char) => percent(char));
}

function percent(char: string): string {
  return [...new TextEncoder().encode(char)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');
}

/** A link with a safe label; only the label when the address cannot be used. */
export function link(label: SafeMarkdown, url: string | null): SafeMarkdown {
  const target = linkTarget(url);
  return target === null ? label : new SafeMarkdown(`[${label}](${target})`);
}

/**
 * Markdown by template literal: the fixed parts are ours, every interpolated value must be safe already or is a number.
 * A string does not type-check here on purpose: say whether it is prose, a cell or code.
 */
export function markdown(parts: TemplateStringsArray, ...values: readonly (SafeMarkdown | number)[]): SafeMarkdown {
  return new SafeMarkdown(parts.reduce((out, part, i) => out + String(values[i - 1]) + part));
}

export function joinMarkdown(items: readonly SafeMarkdown[], separator: string): SafeMarkdown {
  return new SafeMarkdown(items.map(String).join(separator));
}
