/** The emoji that verdicts use, as pictures, as GitHub replaces emoji where the reader's machine has none. The character stays in the text. */

const PICTURES: { readonly [emoji: string]: string } = {
  '✅': '<rect x="1" y="1" width="14" height="14" rx="3" fill="#77b255"/><path d="m4 8.4 2.8 2.8L12 5.2" fill="none" stroke="#fff" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/>',
  '❌': '<path d="m3 3 10 10M13 3 3 13" stroke="#dd2e44" stroke-width="3" stroke-linecap="round"/>',
  '⚠️': '<path d="M8 1.2 15.4 14H.6Z" fill="#ffcc4d" stroke="#ffcc4d" stroke-width="1" stroke-linejoin="round"/><path d="M8 5.5v4M8 11.8v.3" stroke="#231f20" stroke-width="1.8" stroke-linecap="round"/>',
  '❔': '<path d="M5 5.6a3 3 0 1 1 4.6 2.6C8.5 9 8 9.5 8 10.6M8 13.5v.2" fill="none" stroke="#aab8c2" stroke-width="2.2" stroke-linecap="round"/>',
  '⏳': '<path d="M3.5 1.5h9M3.5 14.5h9" stroke="#66757f" stroke-width="1.8" stroke-linecap="round"/><path d="M4.8 2.3h6.4v2.2L8.6 8l2.6 3.5v2.2H4.8v-2.2L7.4 8 4.8 4.5Z" fill="#ffe8b6"/><path d="M5.6 4.4h4.8L8 7.4ZM8 9.6l2.6 3.6H5.4Z" fill="#ffac33"/>',
};
const PATTERN = new RegExp(Object.keys(PICTURES).join('|').replace('⚠️', '⚠️?'), 'gu');

/** Replaces the emoji in HTML text. */
export function pictureEmoji(text: string): string {
  return text.replace(PATTERN, (emoji) => {
    const picture = PICTURES[emoji] ?? PICTURES[`${emoji}\uFE0F`] ?? '';
    return `<span class="md-emoji"><svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">${picture}</svg><span class="sr">${emoji}</span></span>`;
  });
}
