/*
 * The end of a text without a regular expression: `/x+$/` is tried at every place of a text and so takes the square of its length, and the
 * texts are foreign.
 */

/** The text without the characters of that kind at its end. */
export function withoutTrailing(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end--;
  return text.slice(0, end);
}

/** The digits at the end of a text, perhaps none. */
export function trailingDigits(text: string): string {
  let start = text.length;
  while (start > 0 && text[start - 1]! >= '0' && text[start - 1]! <= '9') start--;
  return text.slice(start);
}
