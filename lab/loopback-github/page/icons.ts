/** Small pictures, drawn here. */
import { Html } from './html.ts';

const PATHS = {
  pull: '<circle cx="4" cy="3.5" r="1.75"/><circle cx="4" cy="12.5" r="1.75"/><circle cx="12" cy="12.5" r="1.75"/><path d="M4 5.25v5.5M12 10.75V6a2 2 0 0 0-2-2H7.5M9.5 2 7.5 4l2 2"/>',
  merge:
    '<circle cx="4" cy="3.5" r="1.75"/><circle cx="4" cy="12.5" r="1.75"/><circle cx="12" cy="8.5" r="1.75"/><path d="M4 5.25v5.5M4 5.5c.5 2 3 3 6.25 3"/>',
  check: '<path d="m3 8.5 3.2 3.2L13 4.8"/>',
  cross: '<path d="m4 4 8 8m0-8-8 8"/>',
  dash: '<rect x="4.25" y="4.25" width="7.5" height="7.5" rx="1" fill="currentColor" stroke="none"/>',
  skip: '<circle cx="8" cy="8" r="6"/><path d="m5 11 6-6"/>',
  dot: '<circle cx="8" cy="8" r="4" fill="currentColor" stroke="none"/>',
  alert: '<path d="M8 2.2 14.6 13.5H1.4Z"/><path d="M8 6.5v3M8 11.4v.2"/>',
  info: '<circle cx="8" cy="8" r="6.25"/><path d="M8 7.5v3.7M8 4.8v.2"/>',
  comment:
    '<path d="M2.5 2.75h11a.75.75 0 0 1 .75.75v7a.75.75 0 0 1-.75.75H8l-3 2.5v-2.5H2.5a.75.75 0 0 1-.75-.75v-7a.75.75 0 0 1 .75-.75Z"/>',
  commit: '<circle cx="8" cy="8" r="3"/><path d="M0.5 8H5m6 0h4.5"/>',
  checklist: '<path d="M2 4.5 3.3 6 6 2.8M2 11l1.3 1.5L6 9.3M8.5 4.5H14M8.5 11H14"/>',
  file: '<path d="M3.5 1.75h6l3 3v9a.5.5 0 0 1-.5.5H3.5a.5.5 0 0 1-.5-.5V2.25a.5.5 0 0 1 .5-.5Z"/><path d="M9.25 2v3h3"/>',
  repo: '<path d="M3 12.5v-9A1.75 1.75 0 0 1 4.75 1.75H13v9.5H4.25A1.25 1.25 0 0 0 3 12.5Zm0 0a1.25 1.25 0 0 0 1.25 1.25H13v-2.5"/>',
  play: '<circle cx="8" cy="8" r="6.25"/><path d="M6.5 5.5v5L10.5 8Z" fill="currentColor"/>',
  code: '<path d="m5 4.5-3.5 3.5L5 11.5m6-7L14.5 8 11 11.5"/>',
  eye: '<path d="M1.2 8C2.6 5 5.1 3.4 8 3.4S13.4 5 14.8 8c-1.4 3-3.9 4.6-6.8 4.6S2.6 11 1.2 8Z"/><circle cx="8" cy="8" r="2"/>',
  issue: '<circle cx="8" cy="8" r="6.25"/><circle cx="8" cy="8" r="1.5" fill="currentColor" stroke="none"/>',
  loop: '<path d="M4.5 5A5 5 0 1 0 8 3.2h3M8.8 1 11 3.2 8.8 5.4" stroke-width="1.7"/>',
  package: '<path d="M8 1.6 13.8 4.6v6.8L8 14.4 2.2 11.4V4.6Zm0 0V8m0 0 5.8-3.4M8 8 2.2 4.6M8 8v6.4"/>',
} as const;

/** The name of a picture. */
export type IconName = keyof typeof PATHS;

/** A picture in the colour of the text. */
export function icon(name: IconName, size = 16): Html {
  return new Html(
    `<svg class="icon" width="${size}" height="${size}" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${PATHS[name]}</svg>`,
  );
}
