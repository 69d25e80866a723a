/** Reactions as pictures, so that they look the same where no emoji font is installed. */
import { escaped, Html } from './html.ts';

const FACE =
  '<circle cx="8" cy="8" r="7" fill="#ffcc4d"/><circle cx="5.5" cy="6.5" r="1" fill="#664500"/><circle cx="10.5" cy="6.5" r="1" fill="#664500"/>';
const THUMB =
  '<path fill="#ffcc4d" d="M2 7.5h2.6v6.5H2ZM5.4 7.2 8 1.6c1.3 0 2 1 1.7 2.3L9.2 6h3.6c.9 0 1.5.9 1.2 1.7l-1.6 5.1c-.2.7-.8 1.2-1.6 1.2H5.4Z"/>';
const PICTURES: { [content: string]: readonly [name: string, picture: string] } = {
  '+1': ['thumbs up', THUMB],
  '-1': ['thumbs down', `<g transform="rotate(180 8 8)">${THUMB}</g>`],
  laugh: ['laugh', `${FACE}<path fill="#664500" d="M4 9h8a4 4 0 0 1-8 0Z"/>`],
  confused: ['confused', `${FACE}<path stroke="#664500" stroke-width="1.2" fill="none" d="M5.5 11.3c1.5-1 3-1.2 5-.8"/>`],
  hooray: [
    'hooray',
    '<path fill="#dd2e44" d="m1.5 14.5 4-9 5 5Z"/><path stroke="#226699" stroke-width="1.4" fill="none" d="M9 5c0-2 1-3 2.5-3.5M10.5 7c2-1 3.5-.5 4 .5"/><circle cx="13" cy="4" r="1" fill="#ffac33"/>',
  ],
  heart: ['heart', '<path fill="#dd2e44" d="M8 14.2 2.3 8.4a3.6 3.6 0 0 1 5.1-5l.6.6.6-.6a3.6 3.6 0 0 1 5.1 5Z"/>'],
  rocket: [
    'rocket',
    '<path fill="#a0041e" d="m2 10 4-3 3 3-3 4Z"/><path fill="#66757f" d="M14.5 1.5c-4 0-7 2-9 6l3 3c4-2 6-5 6-9Z"/><circle cx="10.5" cy="5.5" r="1.3" fill="#55acee"/>',
  ],
  eyes: [
    'eyes',
    '<g fill="#fff" stroke="#8899a6" stroke-width=".8"><ellipse cx="4.6" cy="8" rx="3.2" ry="4.6"/><ellipse cx="11.6" cy="8" rx="3.2" ry="4.6"/></g><ellipse cx="3.8" cy="8.6" rx="1.3" ry="1.9" fill="#292f33"/><ellipse cx="10.8" cy="8.6" rx="1.3" ry="1.9" fill="#292f33"/>',
  ],
};

/** The picture of a reaction. */
export function reactionPicture(content: string): Html {
  const [name, picture] = PICTURES[content] ?? [content, '<circle cx="8" cy="8" r="6" fill="#8899a6"/>'];
  return new Html(`<svg width="16" height="16" viewBox="0 0 16 16" role="img" aria-label="${escaped(name)}">${picture}</svg>`);
}
