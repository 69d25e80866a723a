import { writeFile } from 'node:fs/promises';
import { AdviseError, saidIn } from '../base/errors.ts';
import { analyse, type EngineOptions } from '../engine/analyse.ts';
import { LANGS, type Lang } from '../model/lang.ts';
import type { Report } from '../model/report.ts';
import { renderHtml } from '../render/html/page.ts';
import { renderMarkdown } from '../render/markdown.ts';
import { renderSarif } from '../render/sarif.ts';
import { renderText } from '../render/text.ts';
import { folderSourceTree } from '../source/folder-source-tree.ts';
import { openSource, type ProfileSource, reasonOf } from '../sources/index.ts';
import { loadConfig } from './load-config.ts';
import { progressBar } from './progress.ts';
import { notKnown } from './usage.ts';

export interface AnalyzeOptions {
  readonly source?: string;
  readonly baseline?: readonly string[];
  readonly config?: string;
  readonly format: string;
  readonly out?: string;
  readonly lang?: string;
}

const FORMATS = ['text', 'json', 'md', 'html', 'sarif'] as const;
type Format = (typeof FORMATS)[number];

function oneOf<T extends string>(what: 'format' | 'language', value: string, allowed: readonly T[]): T {
  const found = allowed.find((a) => a === value);
  if (found === undefined) throw notKnown(what, value, allowed);
  return found;
}

/** `npu-advise analyze PATH...`; returns the exit code: 0 gate passed or none, 1 gate failed. */
export async function analyze(paths: readonly string[], options: AnalyzeOptions, terminal: Lang): Promise<number> {
  const format = oneOf<Format>('format', options.format, FORMATS);
  const report = await diagnose(paths, options, terminal, { timeline: format === 'html' });
  const text = write(report, format);
  if (options.out === undefined) process.stdout.write(text);
  else await save(options.out, text);
  return report.gate?.outcome === 'fail' ? 1 : 0;
}

/** What all commands that look at a profile do first. `terminal`: its language, where neither an option nor the settings name one. */
export async function diagnose(
  paths: readonly string[],
  options: Omit<AnalyzeOptions, 'format' | 'out'>,
  terminal: Lang = 'en',
  extras: Pick<EngineOptions, 'timeline'> = {},
): Promise<Report> {
  if (paths.length === 0 && options.source === undefined)
    throw new AdviseError(
      'usage',
      { en: 'no profile was given', zh: '没有给出 profile' },
      { en: 'Name a profile, or a repository with --source.', zh: '给出 profile，或用 --source 给出仓库。' },
    );
  const config = await loadConfig(options.config);
  const own = options.config === undefined ? terminal : config.lang;
  const lang = options.lang === undefined ? own : oneOf<Lang>('language', options.lang, LANGS);
  const source = options.source === undefined ? null : folderSourceTree(options.source);
  const sources: ProfileSource[] = [];
  const before: ProfileSource[] = [];
  const bar = progressBar(process.stderr, lang);
  try {
    for (const path of paths) sources.push(await openSource(path));
    for (const path of options.baseline ?? []) before.push(await openSource(path));
    return await analyse({
      sources,
      options: {
        lang,
        thresholds: config.thresholds,
        disabledRules: config.disabled_rules,
        gate: config.gate,
        job: config.job,
        mutes: config.mute,
        ...extras,
      },
      source,
      baseline: before.map((run) => ({ label: run.label, sources: [run] })),
      onProgress: bar.update,
    });
  } finally {
    bar.done();
    for (const opened of [...sources, ...before]) await opened.close();
  }
}

export async function save(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text);
  } catch (error) {
    const why = reasonOf(error);
    throw new AdviseError(
      'not-written',
      { en: `${file} cannot be written (${saidIn(why, 'en')})`, zh: `无法写入 ${file}（${saidIn(why, 'zh')}）` },
      { en: 'Give a file in a folder that exists.', zh: '给出的文件须位于已存在的目录。' },
      { cause: error },
    );
  }
}

function write(report: Report, format: Format): string {
  switch (format) {
    case 'json':
      return `${JSON.stringify(report, null, 2)}\n`;
    case 'html':
      return renderHtml(report);
    case 'sarif':
      return renderSarif(report);
    case 'md':
      return `${renderMarkdown(report)}\n`;
    case 'text':
      return `${renderText(report, { color: process.stdout.isTTY === true && process.env.NO_COLOR === undefined, width: process.stdout.columns ?? 100 })}\n`;
  }
}
