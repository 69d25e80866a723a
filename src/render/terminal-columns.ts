/** Text in columns of a terminal, where a Han character takes two cells. */

/** First and last code point of the ranges that take two cells (Unicode East Asian Width W and F, common blocks). */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0xa4cf],
  [0xa960, 0xa97c],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f300, 0x1f64f],
  [0x1f680, 0x1f6ff],
  [0x1f900, 0x1f9ff],
  [0x20000, 0x3fffd],
];

const COMBINING = /^\p{M}$/u;

/** Cells of one character. */
function charWidth(char: string): number {
  const point = char.codePointAt(0)!;
  if (point < 0x300) return 1;
  if (COMBINING.test(char)) return 0;
  return WIDE.some(([first, last]) => point >= first && point <= last) ? 2 : 1;
}

/** Cells a text takes. Escape sequences of `paint` count nothing. */
export function textWidth(text: string): number {
  let width = 0;
  for (const char of text.replace(/\u001b\[\d*m/g, '')) width += charWidth(char);
  return width;
}

export function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(text)));
}

export function padStart(text: string, width: number): string {
  return ' '.repeat(Math.max(0, width - textWidth(text))) + text;
}

/** Punctuation that may not begin a line. */
const NO_START = /^[，。；：、！？）」』】》～…%,.;:!?)\]}]/;

/** Pieces a line may be broken between: words, and single Han characters with the punctuation that follows them. */
function pieces(text: string): string[] {
  const out: string[] = [];
  // a no-break space is part of its word
  for (const [piece] of text.matchAll(
    /[^\S\u00a0]+|(?:\u001b\[\d*m)*[\u2e80-\u9fff\uf900-\uff60](?:\u001b\[\d*m)*|(?:(?![\u2e80-\u9fff\uf900-\uff60])[\S\u00a0])+/g,
  )) {
    const last = out.at(-1);
    if (last !== undefined && NO_START.test(piece) && last.trim() !== '') out[out.length - 1] = last + piece;
    else out.push(piece);
  }
  return out;
}

/** Breaks a text into lines of at most `width` cells. A word longer than a line is cut. */
export function wrap(text: string, width: number): string[] {
  const room = Math.max(10, width);
  const lines: string[] = [];
  let line = '';
  for (const piece of pieces(text)) {
    if (textWidth(line + piece.trimEnd()) <= room) {
      if (line !== '' || piece.trim() !== '') line += piece;
      continue;
    }
    if (line.trim() !== '') lines.push(line.trimEnd());
    line = piece.trim() === '' ? '' : piece;
    while (textWidth(line) > room) {
      const head = takeCells(line, room);
      lines.push(head);
      line = line.slice(head.length);
    }
  }
  if (line.trim() !== '') lines.push(line.trimEnd());
  return lines;
}

/** The longest start of a text that takes at most `cells`. */
function takeCells(text: string, cells: number): string {
  let width = 0;
  let end = 0;
  for (const char of text) {
    width += charWidth(char);
    if (width > cells && end > 0) break;
    end += char.length;
  }
  return text.slice(0, end);
}

/** A table with aligned columns. `right` lists the columns that are figures. */
export function alignColumns(rows: readonly (readonly string[])[], right: ReadonlySet<number>): string[] {
  const widths: number[] = [];
  for (const row of rows) for (const [i, text] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, textWidth(text));
  return rows.map((row) =>
    row
      .map((text, i) => (right.has(i) ? padStart(text, widths[i]!) : padEnd(text, widths[i]!)))
      .join('  ')
      .trimEnd(),
  );
}
