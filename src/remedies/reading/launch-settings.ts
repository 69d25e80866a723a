import { type Setting, settingsOf } from '../../source/launch/settings.ts';
import type { LineEdit } from '../../source/line-edit.ts';

export { type Setting, settingsOf };

/** The same line with another value. */
export function withValue(setting: Setting, value: string): LineEdit {
  const { file, line, text, column } = setting;
  const after = text.slice(0, column) + value + text.slice(column + setting.value.length);
  return { file, startLine: line, endLine: line, before: text, after };
}
