import { readdirSync, readFileSync } from 'node:fs';
import Handlebars from 'handlebars';
import type { Lang } from '../model/lang.ts';
import { cell, clamp, cleanLine, code, prose, SafeMarkdown } from './escape.ts';
import { WORDS, type Word, word } from './words.ts';

/**
 * Templates hold structure. A value reaches the output only through a helper that says how it is made safe:
 * `{{md x}}` prose, `{{cell x}}` prose in a table, `{{code x}}` a literal, `{{raw x}}` Markdown made by `escape.ts`,
 * `{{html x}}` text inside an HTML line (`<summary>`), where Markdown is not read, `{{t "key"}}` a word.
 * `{{section "name"}}` is a border where a text that is too long may be cut. `*.partial.hbs` are partials.
 */

const FOLDER = new URL('../../templates/', import.meta.url);

/** Stands between sections until `splitSections` takes it out. Escaped text never holds it. */
const BORDER = '\u0000';

type HelperCall = { readonly data: { readonly root: { readonly lang: Lang } } };

const environment = Handlebars.create();

function asMarkdown(text: SafeMarkdown): Handlebars.SafeString {
  return new Handlebars.SafeString(String(text));
}

function wanted(value: unknown, helper: string): string {
  if (typeof value !== 'string') throw new TypeError(`{{${helper}}} takes a string, not ${value === null ? 'null' : typeof value}`);
  return value;
}

environment.registerHelper({
  md: (value: unknown) => asMarkdown(prose(wanted(value, 'md'))),
  cell: (value: unknown) => asMarkdown(cell(wanted(value, 'cell'))),
  code: (value: unknown) => asMarkdown(code(wanted(value, 'code'))),
  // a plain string leaves Handlebars HTML-escaped
  html: (value: unknown) => clamp(cleanLine(wanted(value, 'html').replaceAll('`', '')), 200),
  raw: (value: unknown) => {
    if (!(value instanceof SafeMarkdown)) throw new TypeError('{{raw}} takes Markdown made by escape.ts');
    return asMarkdown(value);
  },
  t: (key: string, call: HelperCall) => {
    if (!(key in WORDS)) throw new TypeError(`no word "${key}"`);
    return asMarkdown(cell(word(key as Word, call.data.root.lang)));
  },
  section: (name: string) => new Handlebars.SafeString(`${BORDER}${name}${BORDER}`),
});

const KNOWN_HELPERS = { md: true, cell: true, code: true, raw: true, html: true, t: true, section: true };

const PARTIAL = '.partial.hbs';

function readTemplate(file: string): string {
  return readFileSync(new URL(file, FOLDER), 'utf8');
}

const files = readdirSync(FOLDER).filter((file) => file.endsWith('.hbs'));

for (const file of files.filter((name) => name.endsWith(PARTIAL)))
  environment.registerPartial(file.slice(0, -PARTIAL.length), readTemplate(file));

const templates = new Map(
  files
    .filter((file) => !file.endsWith(PARTIAL))
    .map((file) => {
      const options = { strict: true, noEscape: false, knownHelpers: KNOWN_HELPERS, knownHelpersOnly: true };
      return [file.slice(0, -'.hbs'.length), environment.compile(readTemplate(file), options)];
    }),
);

/** One blank line between blocks. Fenced blocks stay as they are. */
function tidy(text: string): string {
  const blocks = text.split(/(^(?=(`{3,}))\2[^\n]*\n[\s\S]*?^\2$)/m);
  // split keeps both groups: outside, block, fence, outside, …
  return blocks
    .filter((_, i) => i % 3 !== 2)
    .map((block, i) => (i % 2 === 0 ? block.replace(/\n{3,}/g, '\n\n') : block))
    .join('')
    .trim();
}

/** What a template is filled with. Every field a template names must be there; absent is null. */
export type TemplateModel = Readonly<Record<string, unknown>> & { readonly lang: Lang };

/** A named part of a text. Whole sections are left out when the text is too long. */
export interface Section {
  readonly name: string;
  readonly text: string;
}

/** Fills a template and splits it at its section borders. Empty sections are dropped. */
export function renderSections(name: string, model: TemplateModel): Section[] {
  const template = templates.get(name);
  if (template === undefined) throw new Error(`no template "${name}"`);
  const parts = template(model).split(BORDER);
  const sections: Section[] = [];
  for (let i = 1; i < parts.length; i += 2) {
    const text = tidy(parts[i + 1]!);
    if (text !== '') sections.push({ name: parts[i]!, text });
  }
  return sections;
}
