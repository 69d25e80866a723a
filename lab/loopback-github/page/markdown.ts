/**
 * GitHub-flavoured Markdown as GitHub shows it in comments: raw HTML only from GitHub's allow-list, no styles, classes, ids, scripts or
 * comments; mentions and pull request references become links, so that text which should not mention anybody is seen when it does.
 */
import { randomBytes } from 'node:crypto';
import MarkdownIt, { type RendererRule } from 'markdown-it';
import sanitizeHtml from 'sanitize-html';
import { pictureEmoji } from './emoji-pictures.ts';
import { escaped, Html } from './html.ts';

/** Where a text is shown. */
export interface MarkdownPlace {
  /** Address of the repository's pages. */
  repositoryUrl: string;
  /** Address of this GitHub. */
  url: string;
}

/** Elements GitHub lets through (github/html-pipeline, its sanitisation allow-list; docs: "Basic writing and formatting syntax"). */
const ELEMENTS = [
  ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'br', 'b', 'i', 'strong', 'em', 'a', 'pre', 'code', 'tt', 'div', 'ins', 'del', 'sup', 'sub', 'p'],
  ...['ol', 'ul', 'table', 'thead', 'tbody', 'tfoot', 'blockquote', 'dl', 'dt', 'dd', 'kbd', 'q', 'samp', 'var', 'hr', 'ruby', 'rt', 'rp'],
  ...['li', 'tr', 'td', 'th', 's', 'strike', 'summary', 'details', 'caption', 'figure', 'figcaption', 'abbr', 'bdo', 'cite', 'dfn', 'mark'],
  ...['small', 'span', 'time', 'wbr'],
];
const ATTRIBUTES = {
  a: ['href', 'title', 'rel', 'class'],
  code: ['class'],
  details: ['open'],
  ol: ['start', 'reversed'],
  td: ['align', 'colspan', 'rowspan'],
  th: ['align', 'colspan', 'rowspan'],
  time: ['datetime'],
  span: ['class', 'title'],
  abbr: ['title'],
};

/** Class names only our own rendering can know: what a comment writes itself never matches and is dropped. */
const MARK = `m${randomBytes(8).toString('hex')}`;
const OWN_CLASSES = ['add', 'del', 'hunk', 'mention', 'image'];

const markdown = createMarkdown();

function createMarkdown(): ReturnType<typeof MarkdownIt> {
  const parser = MarkdownIt({ html: true, linkify: true, breaks: true });
  parser.linkify.set({ fuzzyEmail: false, fuzzyLink: false });
  const cell = (tag: string): RendererRule => {
    return (tokens, index) => {
      const align = /text-align:(\w+)/.exec(`${tokens[index]?.attrGet('style') ?? ''}`)?.[1];
      return align ? `<${tag} align="${align}">` : `<${tag}>`;
    };
  };
  parser.renderer.rules.td_open = cell('td');
  parser.renderer.rules.th_open = cell('th');
  parser.renderer.rules.fence = (tokens, index) => {
    const token = tokens[index];
    const content = token?.content ?? '';
    const language = (token?.info ?? '').trim().split(/\s+/)[0];
    return `<pre><code>${language === 'diff' ? content.split('\n').map(diffLine).join('\n') : escaped(content)}</code></pre>\n`;
  };
  return parser;
}

function diffLine(line: string): string {
  const name = line.startsWith('+') ? 'add' : line.startsWith('-') ? 'del' : line.startsWith('@@') ? 'hunk' : null;
  return name === null ? escaped(line) : `<span class="${MARK}-${name}">${escaped(line)}</span>`;
}

/** Elements in which GitHub links no mentions. */
const NO_REFERENCES = ['a', 'code', 'pre', 'tt', 'kbd', 'samp'];

/** Mentions and references in escaped text, as GitHub links them. */
function references(text: string, place: MarkdownPlace): string {
  return text
    .replace(/(^|[^\w/`@.-])@([a-zA-Z0-9](?:[a-zA-Z0-9-]{0,38}(?:\/[\w.-]+)?))/g, (_, before: string, login: string) => {
      return `${before}<a class="${MARK}-mention" href="${place.url}/${login}">@${login}</a>`;
    })
    .replace(/(^|[\s(:,])#(\d{1,9})\b/g, (_, before: string, number: string) => {
      return `${before}<a href="${place.repositoryUrl}/pull/${number}">#${number}</a>`;
    });
}

/** A text as sanitised HTML. */
export function renderMarkdown(text: string, place: MarkdownPlace): Html {
  const rendered = markdown.render(text);
  const clean = sanitizeHtml(rendered, {
    allowedTags: ELEMENTS,
    allowedAttributes: ATTRIBUTES,
    allowedClasses: { span: OWN_CLASSES.map((name) => `${MARK}-${name}`), a: [`${MARK}-mention`], code: [] },
    allowedSchemes: ['http', 'https', 'mailto'],
    allowProtocolRelative: false,
    disallowedTagsMode: 'discard',
    nonTextTags: ['script', 'style', 'textarea', 'option', 'noscript', 'iframe', 'xmp', 'noembed', 'noframes'],
    textFilter: (escapedText, tagName) => (NO_REFERENCES.includes(tagName) ? escapedText : pictureEmoji(references(escapedText, place))),
    transformTags: {
      a: (tagName, attributes) => ({ tagName, attribs: { ...attributes, rel: 'nofollow noopener noreferrer' } }),
      // GitHub serves images through its proxy; here nothing is fetched from elsewhere.
      img: (_tagName, attributes) => ({ tagName: 'span', attribs: { class: `${MARK}-image` }, text: `image: ${attributes.alt ?? ''}` }),
    },
  });
  return new Html(clean.replaceAll(`${MARK}-`, 'md-'));
}
