import { fill } from '../../base/phrase.ts';
import type { L10n, Lang, ParamValue } from '../../model/lang.ts';

const TEXTS = {
  settings: { en: 'Settings: {files:text}', zh: '配置：{files:text}' },
  'no-settings': { en: 'Settings: none found at {ref:text}, the defaults apply', zh: '配置：在 {ref:text} 未找到，使用默认值' },
  'no-token': {
    en: 'Settings: not looked for, there is no token; the defaults apply, without a gate',
    zh: '配置：没有令牌，未查找；使用默认值，不设门禁',
  },
  'settings-invalid': {
    en: 'The settings cannot be used; nothing is analysed until they are repaired',
    zh: '配置无法使用；修复之前不做分析',
  },
  failed: { en: 'The gate failed', zh: '门禁不通过' },
  missing: { en: 'No profile: {why:text}', zh: '没有 profile：{why:text}' },
  'no-comment': {
    en: 'The token may not comment here, as in runs of forks. docs/actions.md has the pair of workflows that can.',
    zh: '此处的令牌无权评论（fork 的运行即如此）。可用的双工作流写法见 docs/actions.zh.md。',
  },
} as const satisfies Readonly<Record<string, L10n>>;

/** What the action says in the log and in annotations of the run. */
export function text(key: keyof typeof TEXTS, lang: Lang, params: Readonly<Record<string, ParamValue>> = {}): string {
  return fill(TEXTS[key], params, lang);
}
