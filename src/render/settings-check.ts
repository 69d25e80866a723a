import type { Lang } from '../model/lang.ts';
import { cell, clamp, cleanLine, joinMarkdown, markdown, prose, type SafeMarkdown } from './escape.ts';
import type { CheckAnnotation, RenderedCheck } from './views.ts';
import { type Word, word } from './words.ts';

/** What a pull request would make of the settings. */
export interface SettingsCheckView {
  readonly lang: Lang;
  /** The settings file of the repository. */
  readonly file: string;
  readonly problems: readonly { readonly file: string; readonly line: number | null; readonly message: string }[];
}

const SHOWN = 20;

/** The check of a changed settings file: where it is wrong, line by line. It is judged only, never applied. */
export function renderSettingsCheck({ lang, file, problems }: SettingsCheckView): RenderedCheck {
  const say = (key: Word): SafeMarkdown => prose(word(key, lang, { file }));
  const isValid = problems.length === 0;
  const parts = [say(isValid ? 'settings.valid' : 'settings.invalid')];
  if (!isValid) {
    const rows = problems.slice(0, SHOWN).map(({ file: of, line, message }) => {
      const place = line === null ? '–' : String(line);
      return markdown`| ${cell(of === file ? place : `${of} ${place}`)} | ${cell(message)} |`;
    });
    const head = [markdown`| ${say('config.line')} | ${say('config.problem')} |`, markdown`|--:|---|`];
    parts.push(joinMarkdown([...head, ...rows], '\n'));
  }
  parts.push(say('settings.base'));
  const title = word(isValid ? 'settings.title.valid' : 'settings.title.invalid', lang);
  return {
    status: 'completed',
    conclusion: isValid ? 'success' : 'failure',
    title,
    summary: String(joinMarkdown(parts, '\n\n')),
    text: '',
    annotations: problems.flatMap((problem) => annotationOf(problem, file, title)),
  };
}

function annotationOf(problem: SettingsCheckView['problems'][number], file: string, title: string): CheckAnnotation[] {
  const { line, message } = problem;
  if (line === null || problem.file !== file) return [];
  const text = clamp(cleanLine(message).replaceAll('`', '').trim(), 1200);
  return [{ path: file, start_line: line, end_line: line, annotation_level: 'failure', title, message: text, raw_details: '' }];
}
