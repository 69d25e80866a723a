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

/** The text without HTML comments; what a reader cannot see is no command. An unclosed one hides the rest. */
function dropHtmlComments(text: string): string {
  let rest = text;
  let kept = '';
  for (let start = rest.indexOf('<!--'); start >= 0; start = rest.indexOf('<!--')) {
    kept += rest.slice(0, start);
    const end = rest.indexOf('-->', start + 4);
    const hidden = end < 0 ? rest.slice(start) : rest.slice(start, end + 3);
    // Line breaks stay, so that text after the comment does not slide to the start of a line it was not at.
    kept += hidden.includes('\n') ? ' \n ' : ' ';
    rest = end < 0 ? '' : rest.slice(end + 3);
  }
  return kept + rest;
}

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

/** A line of a paragraph and where it begins in it. */
interface Candidate {
  readonly at: number;
  readonly command: CommandLine;
}

/** Code spans of a paragraph, as [start, end): a run of backticks up to the next run of the same length. */
function codeSpans(paragraph: string): [number, number][] {
  const runs = [...paragraph.matchAll(/\\`|`+/g)].filter(([run]) => run.startsWith('`'));
  // From behind: for each run, the next one of its length.
  const partner: (number | undefined)[] = [];
  const last = new Map<number, number>();
  for (let i = runs.length - 1; i >= 0; i--) {
    const { length } = runs[i]![0];
    partner[i] = last.get(length);
    last.set(length, i);
  }
  const spans: [number, number][] = [];
  for (let i = 0; i < runs.length; i++) {
    const end = partner[i];
    if (end === undefined) continue;
    spans.push([runs[i]!.index, runs[end]!.index]);
    i = end;
  }
  return spans;
}

/** Blocks whose text GitHub shows as it is, up to the end of the block. */
const RAW_BLOCK = /^ {0,3}<(pre|script|style|textarea)(?=[\s>]|$)/i;

/**
 * Commands of a comment: the exact token at the very start of a line, outside code (fenced, inline, `<pre>`), quotes and HTML comments.
 */
export function parseCommands(body: string): CommandLine[] {
  const found: CommandLine[] = [];
  let fence: { mark: string; length: number } | null = null;
  let raw: string | null = null;
  let isQuoted = false;
  let paragraph = '';
  let candidates: Candidate[] = [];
  const endParagraph = (): void => {
    if (candidates.length > 0) {
      const spans = codeSpans(paragraph);
      for (const { at, command } of candidates) if (!spans.some(([start, end]) => start < at && at < end)) found.push(command);
    }
    paragraph = '';
    candidates = [];
  };
  for (const line of dropHtmlComments(body.slice(0, MAX_BODY)).split(/\r\n|\n|\r/)) {
    if (found.length >= MAX_COMMANDS) break;
    const marker = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line);
    if (fence !== null) {
      const closes = marker !== null && marker[1]![0] === fence.mark && marker[1]!.length >= fence.length && marker[2]!.trim() === '';
      if (closes) fence = null;
      continue;
    }
    raw ??= RAW_BLOCK.exec(line)?.[1]?.toLowerCase() ?? null;
    if (raw !== null) {
      if (line.toLowerCase().includes(`</${raw}>`)) raw = null;
      endParagraph();
      continue;
    }
    if (marker !== null && !(marker[1]!.startsWith('`') && marker[2]!.includes('`'))) {
      endParagraph();
      isQuoted = false;
      fence = { mark: marker[1]![0]!, length: marker[1]!.length };
      continue;
    }
    // A paragraph that begins as a quote goes on as one until a blank line.
    if (/^ {0,3}>/.test(line)) isQuoted = true;
    else if (line.trim() === '') isQuoted = false;
    if (isQuoted || line.trim() === '') {
      endParagraph();
      continue;
    }
    const command = candidates.length >= 4 * MAX_COMMANDS ? null : toCommand(line);
    if (command !== null) candidates.push({ at: paragraph.length, command });
    paragraph += `${line}\n`;
  }
  endParagraph();
  return found.slice(0, MAX_COMMANDS);
}
