import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import MarkdownIt from 'markdown-it';

const CSS = readFileSync(fileURLToPath(import.meta.resolve('github-markdown-css/github-markdown-light.css')), 'utf8');

/** Markdown the way GitHub reads it: GFM tables and bare addresses as links, HTML let through so that nothing of ours hides. */
export const gfm = new MarkdownIt({ html: true, linkify: true });
// GitHub links bare addresses only with a scheme or www
gfm.linkify.set({ fuzzyLink: false });

/** A comment as a page, 860 px wide like GitHub's column. */
export function commentPage(markdown: string): string {
  const body = gfm.render(markdown);
  const more = 'body{margin:0} .markdown-body{width:860px;box-sizing:border-box;font-size:14px;padding:0}';
  return `<!doctype html><meta charset="utf-8"><style>${CSS}${more}</style><article class="markdown-body">${body}</article>`;
}
