import type { L10n } from '../../model/lang.ts';
import type { SourceTree } from '../../model/source-tree.ts';
import type { CallSite } from '../../source/find-in-tree.ts';
import { type FlagUse, flagUses } from '../../source/launch/flags.ts';
import type { Option } from '../../source/options.ts';
import { type Constant, givenTo } from '../../source/values.ts';
import { both, filled } from '../wording/bilingual.ts';
import type { Place } from './places.ts';

/** The option an argument comes from, and the command lines that pass it. */
export interface OptionBehind {
  readonly option: Option;
  /** Its default; undefined when it cannot be read or the code computes with it. */
  readonly constant: Constant | undefined;
  readonly uses: readonly FlagUse[];
}

/** Null when the argument is a literal, is not there, or cannot be followed to one option. */
export function optionBehind(tree: SourceTree, site: CallSite, keyword: string, position: number | null = null): OptionBehind | null {
  const given = givenTo(tree, site.module, site.call, keyword, position);
  if (given.kind !== 'given' || given.value.kind !== 'option') return null;
  const { option, constant } = given.value;
  const flag = option.from === 'argparse' ? option.name : option.from === 'dataclass' ? `--${option.name}` : null;
  return { option, constant, uses: flag === null ? [] : flagUses(tree, flag) };
}

const FROM = both('`{keyword:text}` comes from {option:code} ({at:code})', '`{keyword:text}` 来自 {option:code}（{at:code}）');
const FROM_DEFAULT = both(
  '`{keyword:text}` comes from {option:code}, by default {value:code} ({at:code})',
  '`{keyword:text}` 来自 {option:code}，默认值为 {value:code}（{at:code}）',
);
const HERE = both(': change it there.', '：在该处修改。');
const PASSED = both(', which {uses:code} sets: change it there.', '，由 {uses:code} 设置：在那里修改。');

/** Where to change the argument. `keyword` is a word of ours, never of a repository. */
export function whereToSet(behind: OptionBehind, keyword: string): L10n {
  const { option, constant, uses } = behind;
  const from = constant === undefined || constant === null ? FROM : FROM_DEFAULT;
  const to = uses.length === 0 ? HERE : PASSED;
  return filled(both(from.en + to.en, from.zh + to.zh), {
    keyword,
    option: option.name,
    value: String(constant),
    at: `${option.at.file}:${option.at.line}`,
    uses: uses.slice(0, 3).map(({ file, line }) => `${file}:${line}`),
  });
}

/** The definition and the command lines, as places of a change. */
export function placesToSet({ option, uses }: OptionBehind): Place[] {
  return [option.at, ...uses.slice(0, 3)].map(({ file, line }) => ({ file, line, symbol: null }));
}
