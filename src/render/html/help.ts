import type { Lang } from '../../model/lang.ts';
import { word } from '../words.ts';
import { html, type Markup, prose, text } from './markup.ts';

const KEYS = [
  ['/', 'search'],
  ['[ ]', 'cause'],
  ['T', 'evidence'],
  ['W S', 'zoom'],
  ['A D', 'pan'],
  ['0', 'all'],
  ['Backspace', 'undo'],
  [', .', 'slice'],
  ['↑ ↓', 'lane'],
  ['F', 'fit'],
  ['M', 'mark'],
  ['P', 'pin'],
  ['Esc', 'clear'],
  ['Ctrl + wheel', 'wheel'],
  ['drag', 'drag'],
  ['?', 'this'],
] as const;

/** What the keys do, opened by the script of the page. */
export function helpDialog(lang: Lang): Markup {
  return html`<dialog id="help" aria-label="${text(word('html.help', lang))}"><h2>${prose(word('html.help', lang))}</h2><dl>${KEYS.map(
    ([key, what]) =>
      html`<div class="key-row"><dt><kbd lang="en">${text(key)}</kbd></dt><dd>${prose(word(`html.help.${what}`, lang))}</dd></div>`,
  )}</dl><button type="button" id="help-close">${prose(word('html.help.close', lang))}</button></dialog>`;
}
