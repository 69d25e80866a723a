/** One command as written in a comment. */
export interface CommandLine {
  readonly name: string;
  readonly args: string[];
}

/** More commands in one comment than this are a mistake. */
export const MAX_COMMANDS = 5;
const MAX_BODY = 70_000;
/** Words after the name; a reason is made of words. */
const MAX_ARGS = 80;
const MAX_WORD = 250;
const TOKEN = '/npu-advise';
/** `/npu-advise` alone asks for an analysis. */
const DEFAULT_COMMAND = 'run';

/** Full-width letters, digits and signs as an input method for Chinese writes them, where nothing else is in the word. */
export function narrow(word: string): string {
  const plain = word.replace(/[\uff01-\uff5e]/g, (char) => String.fromCharCode(char.charCodeAt(0) - 0xfee0));
  return /^[!-~]*$/.test(plain) ? plain : word;
}

function toCommand(line: string): CommandLine | null {
  const words = line
    .replace(/^[\ufeff\u200b\u2060]+/, '')
    .split(/[\s\u200b\u2060]+/, MAX_ARGS + 2)
    .map((word) => narrow(word.slice(0, MAX_WORD).toWellFormed()));
  if (words[0] !== TOKEN) return null;
  const [name = DEFAULT_COMMAND, ...args] = words.slice(1).filter((word) => word !== '');
  return { name: name.toLowerCase(), args: args.slice(0, MAX_ARGS) };
}

/** A line of a paragraph, as [start, end) in it. */
interface Candidate {
  readonly start: number;
  readonly end: number;
}

type Span = readonly [start: number, end: number];

/** For each run of backticks the place behind the next run of the same length, by where it begins. */
function codePartners(paragraph: string): Map<number, number> {
  const runs = [...paragraph.matchAll(/\\`|`+/g)].filter(([run]) => run.startsWith('`'));
  const partners = new Map<number, number>();
  // From behind: the last one seen of a length is the next one.
  const last = new Map<number, number>();
  for (const { 0: run, index } of runs.toReversed()) {
    const next = last.get(run.length);
    if (next !== undefined) partners.set(index, next + run.length);
    last.set(run.length, index);
  }
  return partners;
}

/** Code spans of a paragraph as they are where no comment is in it. */
function codeSpans(partners: ReadonlyMap<number, number>): Span[] {
  const spans: Span[] = [];
  let from = 0;
  for (const [start, end] of [...partners].toReversed()) {
    if (start < from) continue;
    spans.push([start, end]);
    from = end;
  }
  return spans;
}

/** HTML comments of a paragraph: whichever of code and comment begins first hides the signs of the other. */
function commentsIn(paragraph: string, partners: ReadonlyMap<number, number>): { spans: Span[]; isLeftOpen: boolean } {
  const spans: Span[] = [];
  const signs = /\\`|`+|<!--/g;
  for (let sign = signs.exec(paragraph); sign !== null; sign = signs.exec(paragraph)) {
    if (sign[0] !== '<!--') {
      signs.lastIndex = partners.get(sign.index) ?? signs.lastIndex;
      continue;
    }
    const end = paragraph.indexOf('-->', sign.index + 2);
    spans.push([sign.index, end < 0 ? paragraph.length : end + 3]);
    if (end < 0) return { spans, isLeftOpen: true };
    signs.lastIndex = end + 3;
  }
  return { spans, isLeftOpen: false };
}

const NO_CODE: ReadonlyMap<number, number> = new Map();

function without(text: string, spans: readonly Span[]): string {
  let kept = '';
  let from = 0;
  for (const [start, end] of spans) {
    kept += `${text.slice(from, start)} `;
    from = end;
  }
  return kept + text.slice(from);
}

/** Blocks whose text GitHub shows as it is, up to the end of the block. */
const RAW_BLOCK = /^ {0,3}<(pre|script|style|textarea)(?=[\s>]|$)/i;
/** In blocks of HTML backticks mean nothing. */
const HTML_BLOCK = /^ {0,3}</;

/**
 * Commands of a comment: the exact token at the very start of a line, outside code (fenced, inline, `<pre>`), quotes and HTML comments.
 * Where it is not certain that a reader sees a line, it is none.
 */
export function parseCommands(body: string): CommandLine[] {
  const found: CommandLine[] = [];
  let fence: { mark: string; length: number } | null = null;
  let raw: string | null = null;
  /** Inside an HTML comment. `perhaps`: it began inside another block, so that a fence may have ended the block and not the comment. */
  let comment: 'surely' | 'perhaps' | null = null;
  let isQuoted = false;
  let paragraph = '';
  let candidates: Candidate[] = [];
  const endParagraph = (): void => {
    const partners = codePartners(paragraph);
    const comments = commentsIn(paragraph, HTML_BLOCK.test(paragraph) ? NO_CODE : partners);
    const hidden = [...comments.spans, ...codeSpans(partners)];
    for (const { start, end } of candidates) {
      if (hidden.some((span) => span[0] < start && start < span[1])) continue;
      const inside = comments.spans
        .filter((span) => span[0] >= start && span[0] < end)
        .map((span): Span => [span[0] - start, span[1] - start]);
      const command = toCommand(without(paragraph.slice(start, end), inside));
      if (command !== null) found.push(command);
    }
    if (comments.isLeftOpen) comment = 'perhaps';
    paragraph = '';
    candidates = [];
  };
  for (const line of body.slice(0, MAX_BODY).split(/\r\n|\n|\r/)) {
    if (found.length >= MAX_COMMANDS) break;
    const marker = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line);
    if (fence !== null) {
      const closes = marker !== null && marker[1]![0] === fence.mark && marker[1]!.length >= fence.length && marker[2]!.trim() === '';
      if (closes) fence = null;
      continue;
    }
    const opensFence = marker !== null && !(marker[1]!.startsWith('`') && marker[2]!.includes('`'));
    const isBlank = line.trim() === '';
    const isQuote = /^ {0,3}>/.test(line);
    const isComment = line.startsWith('<!--');
    const isInHtml = raw !== null || HTML_BLOCK.test(paragraph);
    if (comment === null && (opensFence || isBlank || isQuote || isQuoted || isComment || raw !== null || RAW_BLOCK.test(line)))
      endParagraph();
    if (comment !== null) {
      if (comment === 'perhaps' && opensFence) break;
      const end = line.indexOf('-->');
      if (end >= 0) comment = commentsIn(line.slice(end + 3), NO_CODE).isLeftOpen ? 'perhaps' : null;
      continue;
    }
    raw ??= RAW_BLOCK.exec(line)?.[1]?.toLowerCase() ?? null;
    if (raw !== null) {
      const { spans, isLeftOpen } = commentsIn(line, NO_CODE);
      if (without(line, spans).toLowerCase().includes(`</${raw}>`)) raw = null;
      if (isLeftOpen) comment = 'perhaps';
      continue;
    }
    if (isComment) {
      const { spans, isLeftOpen } = commentsIn(line, NO_CODE);
      if (isLeftOpen) comment = isInHtml || isQuoted || spans.length > 1 ? 'perhaps' : 'surely';
      continue;
    }
    if (opensFence) {
      isQuoted = false;
      fence = { mark: marker[1]![0]!, length: marker[1]!.length };
      continue;
    }
    // A paragraph that begins as a quote goes on as one until a blank line.
    if (isQuote) isQuoted = true;
    else if (isBlank) isQuoted = false;
    if (isQuoted || isBlank) {
      if (commentsIn(line, codePartners(line)).isLeftOpen) comment = 'perhaps';
      continue;
    }
    if (candidates.length < 4 * MAX_COMMANDS && toCommand(line) !== null) {
      candidates.push({ start: paragraph.length, end: paragraph.length + line.length });
    }
    paragraph += `${line}\n`;
  }
  endParagraph();
  return found.slice(0, MAX_COMMANDS);
}
