/* The example on a rule's page, from the record that `npm run examples` made. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { L10n, Lang } from '../src/model/lang.ts';
import type { Confidence, Severity } from '../src/model/report.ts';
import { formatPercent, formatSavingLine, formatTime } from '../src/render/figures.ts';

/** What a report says about one finding, in one language. */
export interface Told {
  readonly title: string;
  readonly evidence: readonly string[];
  readonly caveats: readonly string[];
  readonly change: { readonly title: string; readonly text: string } | null;
  readonly code: string | null;
  readonly edit: { readonly before: string; readonly after: string } | null;
}

export interface RuleExample {
  readonly job: L10n;
  readonly stepTimeMs: number | null;
  readonly severity: Severity;
  readonly confidence: Confidence;
  readonly ranks: readonly number[];
  readonly saving: {
    readonly perStepMs: { readonly floor: number; readonly likely: number | null; readonly ceiling: number };
    readonly shareOfStep: number;
  } | null;
  /** Rule of the finding that explains this one. */
  readonly under?: string | null;
  readonly location: { readonly file: string; readonly line: number } | null;
  readonly en: Told;
  readonly zh: Told;
}

const WORDS = {
  en: {
    heading: 'Example',
    step: (time: string) => `A step takes ${time}.`,
    says: 'The report says:',
    costs: (saving: string, share: string) => `**${saving}** per step, ${share} of it`,
    free: 'claims no time',
    under: (rule: string) => `stands under the finding of \`${rule}\`, which explains it`,
    severity: (severity: string, confidence: string) => `severity ${severity}, confidence ${confidence}`,
    at: (place: string) => `at \`${place}\``,
    change: (title: string) => `The change: **${title}**.`,
    stop: '.',
  },
  zh: {
    heading: '示例',
    step: (time: string) => `一个迭代 ${time}。`,
    says: '报告给出：',
    costs: (saving: string, share: string) => `每迭代 **${saving}**，占 ${share}`,
    free: '不声称可省时间',
    under: (rule: string) => `列在可解释它的 \`${rule}\` 之下`,
    severity: (severity: string, confidence: string) => `严重程度 ${ZH[severity] ?? severity}，置信度 ${ZH[confidence] ?? confidence}`,
    at: (place: string) => `位于 \`${place}\``,
    change: (title: string) => `改法：**${title}**。`,
    stop: '。',
  },
} as const;

const ZH: Readonly<Record<string, string>> = { critical: '严重', high: '高', medium: '中', low: '低', info: '提示' };

/** The section of a page, with the blank line before it; empty without a record. Throws when the rule says something else by now. */
export function exampleText(root: string, id: string, lang: Lang): string {
  const file = join(root, 'src/rules', id, 'example.generated.json');
  if (!existsSync(file)) return '';
  const example = JSON.parse(readFileSync(file, 'utf8')) as RuleExample;
  const stale = staleSentences(root, id, example[lang], lang);
  if (stale.length > 0) throw new Error(`the example of ${id} is out of date (npm run examples -- ${id}): "${stale.join('", "')}"`);
  return `\n${exampleSection(example, lang)}\n`;
}

function exampleSection(example: RuleExample, lang: Lang): string {
  const words = WORDS[lang];
  const told = example[lang];
  const { saving, location } = example;
  const costs =
    saving === null || headline(saving) === 0
      ? words.free
      : words.costs(formatSavingLine(saving.perStepMs, lang), formatPercent(saving.shareOfStep, lang));
  const facts = [
    costs,
    ...(example.under == null ? [] : [words.under(example.under)]),
    words.severity(example.severity, example.confidence),
    ...(location === null ? [] : [words.at(`${location.file}:${location.line}`)]),
  ];
  const job = example.job[lang];
  const step = example.stepTimeMs === null ? [] : [words.step(formatTime(example.stepTimeMs))];
  const quote = [
    `**${told.title}**`,
    '',
    facts.join(lang === 'en' ? '; ' : '；'),
    '',
    ...[...told.evidence, ...told.caveats].map((text) => `- ${text}`),
  ];
  return [
    `## ${words.heading}`,
    '',
    [`${job.slice(0, 1).toUpperCase()}${job.slice(1)}${words.stop}`, ...step, words.says].join(lang === 'en' ? ' ' : ''),
    '',
    ...quote.map((line) => `> ${line}`.trimEnd()),
    ...(told.change === null ? [] : ['', words.change(told.change.title), ...(told.change.text === '' ? [] : ['', told.change.text])]),
    ...fixOf(told),
  ].join('\n');
}

function headline({ perStepMs }: NonNullable<RuleExample['saving']>): number {
  return perStepMs.likely ?? perStepMs.ceiling;
}

function fixOf({ edit, code }: Told): string[] {
  if (edit !== null) {
    const lines = (text: string, sign: string): string[] => text.split('\n').map((line) => `${sign}${line}`);
    return ['', '```diff', ...lines(edit.before, '-'), ...lines(edit.after, '+'), '```'];
  }
  if (code === null) return [];
  const isShell = /^(export |npu-|npm |#!)/m.test(code) && !/^(import|from|with|for|def) /m.test(code);
  return ['', `\`\`\`${isShell ? 'sh' : 'python'}`, code.trimEnd(), '```'];
}

/**
 * Sentences of the example that the rule's source does not say any more. A sentence is a template with figures filled in, so each part of
 * some template between its placeholders has to stand in it, in order.
 */
function staleSentences(root: string, id: string, { title, evidence }: Told, lang: Lang): string[] {
  const templates = templatesOf(root, id, lang);
  return [title, ...evidence].filter((sentence) => !templates.some((template) => fits(template, sentence)));
}

/** Texts of the rule, and of the job facts that it shares with others, as they stand in the source. */
function templatesOf(root: string, id: string, lang: Lang): string[] {
  const source = [join('src/rules', id), 'src/facts/job'].map((folder) => textsBelow(join(root, folder))).join('\n');
  const text = String.raw`'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|\`((?:[^\`\\]|\\.)*)\``;
  return [...source.matchAll(new RegExp(`\\b${lang}:\\s*(?:${text})`, 'g'))].map((m) => unescaped(m[1] ?? m[2] ?? m[3] ?? ''));
}

function unescaped(literal: string): string {
  return literal.replaceAll(/\\u([0-9a-f]{4})|\\(.)/g, (_, code?: string, char?: string) =>
    code === undefined ? char! : String.fromCharCode(Number.parseInt(code, 16)),
  );
}

function fits(template: string, sentence: string): boolean {
  const parts = template.split(/\$\{(?:[^{}]|\{[^{}]*\})*\}|\{[^{}]*\}/);
  const [first = '', last = ''] = [parts[0], parts.at(-1)];
  if (parts.join('') === '' || !sentence.startsWith(first) || !sentence.endsWith(last)) return false;
  let at = 0;
  for (const part of parts) {
    const found = sentence.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return true;
}

function textsBelow(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n');
}
