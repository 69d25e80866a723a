/** One command as written in a comment. */
export interface CommandLine {
  readonly name: string;
  readonly args: string[];
}

/** More commands in one comment than this are a mistake. */
export const MAX_COMMANDS = 5;
const MAX_BODY = 70_000;
const MAX_ARGS = 8;
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

/**
 * Commands of a comment: the exact token at the very start of a line, outside code fences, quotes and HTML comments.
 */
export function parseCommands(body: string): CommandLine[] {
  const found: CommandLine[] = [];
  let fence: { mark: string; length: number } | null = null;
  let isQuoted = false;
  for (const line of dropHtmlComments(body.slice(0, MAX_BODY)).split(/\r\n|\n|\r/)) {
    const marker = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line);
    if (fence !== null) {
      const closes = marker !== null && marker[1]![0] === fence.mark && marker[1]!.length >= fence.length && marker[2]!.trim() === '';
      if (closes) fence = null;
      continue;
    }
    if (marker !== null && !(marker[1]!.startsWith('`') && marker[2]!.includes('`'))) {
      fence = { mark: marker[1]![0]!, length: marker[1]!.length };
      continue;
    }
    // A paragraph that begins as a quote goes on as one until a blank line.
    if (/^ {0,3}>/.test(line)) isQuoted = true;
    else if (line.trim() === '') isQuoted = false;
    if (isQuoted) continue;
    const match = /^\/npu-advise(?:[ \t]+(.*))?$/.exec(line);
    if (match === null) continue;
    const words = (match[1] ?? '')
      .trim()
      .split(/[ \t]+/)
      .filter((word) => word !== '');
    const [name = DEFAULT_COMMAND, ...args] = words.map((word) => word.slice(0, 250));
    found.push({ name: name.toLowerCase(), args: args.slice(0, MAX_ARGS) });
    if (found.length >= MAX_COMMANDS) break;
  }
  return found;
}
