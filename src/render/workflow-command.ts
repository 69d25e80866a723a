import { clamp } from './escape.ts';

/** Commands to the runner of GitHub Actions: lines of the log. Whatever is foreign in them is escaped as the runner's own toolkit does it. */

export type WorkflowLevel = 'error' | 'warning' | 'notice';

export interface WorkflowPlace {
  readonly file: string;
  readonly line: number | null;
  readonly column: number | null;
  readonly endColumn: number | null;
}

const MESSAGE_MAX = 4000;

function data(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function property(text: string): string {
  return data(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}

/** An annotation of a run. One line whatever the message holds. */
export function workflowCommand(level: WorkflowLevel, place: WorkflowPlace | null, message: string, title: string | null = null): string {
  const fields: [string, string][] = [];
  if (place !== null) {
    fields.push(['file', place.file]);
    if (place.line !== null) fields.push(['line', String(place.line)]);
    if (place.line !== null && place.column !== null) fields.push(['col', String(place.column)]);
    if (place.line !== null && place.endColumn !== null) fields.push(['endColumn', String(place.endColumn)]);
  }
  if (title !== null) fields.push(['title', clamp(title, 240)]);
  const head = fields.map(([name, value]) => `${name}=${property(value)}`).join(',');
  return `::${level}${head === '' ? '' : ` ${head}`}::${data(clamp(message, MESSAGE_MAX))}`;
}

/** Text in which the runner obeys nothing: commands are off until the token, which nobody can guess, is said again. */
export function inertText(text: string, token: string): string {
  return `::stop-commands::${token}\n${text.replace(/\n$/, '')}\n::${token}::\n`;
}
