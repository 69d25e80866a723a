/** Suggestion blocks in review comments. */

/** A part of a review comment: text, or the replacement of a suggestion block. */
export type CommentPart = { text: string } | { suggestion: string };

/** Splits a review comment into texts and suggestions; `unclosed` when a suggestion block never ends. */
export function commentParts(body: string): { parts: CommentPart[]; unclosed: boolean } {
  const parts: CommentPart[] = [];
  let unclosed = false;
  let text: string[] = [];
  const endText = (): void => {
    if (text.join('').trim() !== '') parts.push({ text: text.join('\n') });
    text = [];
  };
  const lines = body.replaceAll('\r', '').split('\n');
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? '';
    const fence = /^ {0,3}(`{3,}|~{3,})[ \t]*suggestion[ \t]*$/.exec(line)?.[1];
    const close = fence === undefined ? -1 : lines.findIndex((candidate, at) => at > index && closes(candidate, fence));
    if (fence !== undefined && close < 0) unclosed = true;
    if (close < 0) {
      text.push(line);
      continue;
    }
    endText();
    parts.push({ suggestion: lines.slice(index + 1, close).join('\n') });
    index = close;
  }
  endText();
  return { parts, unclosed };
}

function closes(line: string, fence: string): boolean {
  const mark = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line)?.[1];
  return mark !== undefined && mark[0] === fence[0] && mark.length >= fence.length;
}
