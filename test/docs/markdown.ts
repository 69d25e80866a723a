/* The Markdown files of the repository, and what stands in them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import markdownIt from 'markdown-it';

export const ROOT = join(import.meta.dirname, '../..');

/** Folders whose Markdown is no documentation: expected output, and the repository the demo opens a pull request in. */
const ELSEWHERE = /^(node_modules|dist|coverage|\.git|\.demo|\.data|test|templates|lab\/demo\/repository)(\/|$)/;

export interface Block {
  /** `docs/capture.md:12` */
  readonly at: string;
  readonly lang: string;
  readonly text: string;
}

export interface Page {
  readonly path: string;
  readonly text: string;
  readonly blocks: readonly Block[];
  /** Inline code, as written. */
  readonly codes: readonly Block[];
  /** Where each link or picture leads. */
  readonly links: readonly Block[];
  readonly anchors: ReadonlySet<string>;
}

const parser = markdownIt();

function markdownFiles(folder = ''): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (ELSEWHERE.test(path)) return [];
    if (entry.isDirectory()) return markdownFiles(path);
    return path.endsWith('.md') ? [path] : [];
  });
}

/** The anchor GitHub gives a heading. */
function slug(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-');
}

function readPage(path: string): Page {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const blocks: Block[] = [];
  const codes: Block[] = [];
  const links: Block[] = [];
  const anchors = new Set<string>();
  const tokens = parser.parse(text, {});
  let line = 1;
  tokens.forEach((token, i) => {
    line = token.map === null ? line : token.map[0] + 1;
    const at = `${path}:${line}`;
    if (token.type === 'fence') blocks.push({ at, lang: token.info.trim().split(/\s+/)[0] ?? '', text: token.content });
    if (token.type === 'heading_open') {
      const plain = (tokens[i + 1]?.children ?? []).map((child) => child.content).join('');
      const own = slug(plain);
      let name = own;
      for (let n = 1; anchors.has(name); n++) name = `${own}-${n}`;
      anchors.add(name);
    }
    for (const child of token.children ?? []) {
      if (child.type === 'code_inline') codes.push({ at, lang: '', text: child.content });
      const target = child.attrGet('href') ?? child.attrGet('src');
      if (target !== null) links.push({ at, lang: '', text: decodeURI(String(target)) });
    }
  });
  return { path, text, blocks, codes, links, anchors };
}

export const PAGES: readonly Page[] = markdownFiles().map(readPage);

/** A command of a shell block, in words. */
export interface Shell {
  readonly at: string;
  readonly text: string;
  readonly env: Readonly<Record<string, string>>;
  readonly words: readonly string[];
}

/** Commands of a shell block: joined at `\`, apart at `&&`, `;` and `|`, without comments. Loops and functions are single words here. */
export function commandsOf({ at, text }: Block): Shell[] {
  return text
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .flatMap((line) => apart(line))
    .map((words) => {
      const env: Record<string, string> = {};
      let rest = words;
      for (let set = /^([A-Z_][A-Z0-9_]*)=(.*)$/.exec(rest[0] ?? ''); set !== null; set = /^([A-Z_][A-Z0-9_]*)=(.*)$/.exec(rest[0] ?? '')) {
        env[set[1]!] = set[2]!;
        rest = rest.slice(1);
      }
      return { at, text: words.join(' '), env, words: rest };
    });
}

/** Words of each command of a line; quotes taken off, a comment left out. */
function apart(line: string): string[][] {
  const commands: string[][] = [[]];
  let word: string | null = null;
  let quote = '';
  const end = (): void => {
    if (word !== null) commands.at(-1)!.push(word);
    word = null;
  };
  for (let i = 0; i < line.length; i++) {
    const c = line[i]!;
    if (quote !== '') {
      if (c === quote) quote = '';
      else word += c;
    } else if (c === "'" || c === '"') {
      quote = c;
      word ??= '';
    } else if (/\s/.test(c)) end();
    else if (c === '#' && word === null) break;
    else if (c === '|' || c === ';' || (c === '&' && line[i + 1] === '&')) {
      end();
      if (c !== ';' && line[i + 1] === c) i++;
      commands.push([]);
    } else word = (word ?? '') + c;
  }
  end();
  return commands.filter((words) => words.length > 0);
}
