import type { Lang } from '../model/lang.ts';
import { columns } from './check.ts';
import { cell, clamp, cleanLine, joinMarkdown, markdown, prose, type SafeMarkdown } from './escape.ts';
import type { CheckAnnotation, ConfigProblemView, RenderedCheck } from './views.ts';
import { type Word, word } from './words.ts';

/** What a pull request would make of the settings. */
export interface SettingsCheckView {
  readonly lang: Lang;
  /** The settings file of the repository. */
  readonly file: string;
  readonly problems: readonly ConfigProblemView[];
}

const SHOWN = 20;

/** The check of a changed settings file: where it is wrong, line by line. It is judged only, never applied. */
export function renderSettingsCheck({ lang, file, problems }: SettingsCheckView): RenderedCheck {
  const say = (key: Word): SafeMarkdown => prose(word(key, lang, { file }));
  const isValid = problems.length === 0;
  const isUncertain = !isValid && problems.every(({ isOutOfReach }) => isOutOfReach);
  const parts = [say(isValid ? 'settings.valid' : isUncertain ? 'settings.uncertain' : 'settings.invalid')];
  if (!isValid) {
    const rows = problems.slice(0, SHOWN).map(({ file: of, line, column, message }) => {
      const place = line === null ? '–' : column === null ? String(line) : `${line}:${column}`;
      return markdown`| ${cell(of === file ? place : `${of} ${place}`)} | ${cell(message)} |`;
    });
    const head = [markdown`| ${say('config.line')} | ${say('config.problem')} |`, markdown`|--:|---|`];
    parts.push(joinMarkdown([...head, ...rows], '\n'));
  }
  parts.push(say('settings.base'));
  const title = word(isValid ? 'settings.title.valid' : isUncertain ? 'settings.title.uncertain' : 'settings.title.invalid', lang);
  return {
    status: 'completed',
    conclusion: isValid ? 'success' : isUncertain ? 'neutral' : 'failure',
    title,
    summary: String(joinMarkdown(parts, '\n\n')),
    text: '',
    annotations: problems.flatMap((problem) => annotationOf(problem, file, title)),
  };
}

function annotationOf(problem: SettingsCheckView['problems'][number], file: string, title: string): CheckAnnotation[] {
  const { line, column, endColumn, message, isOutOfReach } = problem;
  if (line === null || problem.file !== file) return [];
  const text = clamp(cleanLine(message).replaceAll('`', '').trim(), 1200);
  const place = { path: file, start_line: line, end_line: line, ...columns(column, endColumn) };
  return [{ ...place, annotation_level: isOutOfReach ? 'warning' : 'failure', title, message: text, raw_details: '' }];
}
