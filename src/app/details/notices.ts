import { createHash } from 'node:crypto';

const STYLE =
  ':root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}h1{font-size:1.3rem}code{font-family:ui-monospace,monospace}p+h1{margin-top:2rem}';

export const NOTICE_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'`;

/** Who follows a link that works no more is told how to get one that does. It holds nothing of the report, not even its language. */
export function gonePage(days: number): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>This link has ended · 链接已失效</title><style>${STYLE}</style></head>
<body><main>
<h1>This link has ended</h1>
<p>A link to a report works for ${days === 1 ? 'a day' : `${days} days`}, and ends earlier when the report is no longer kept, for example because the App was removed from the repository.</p>
<p>As a rule the comment of an open pull request gets a new link before the old one ends. For one at once, comment <code>/npu-advise run</code> on the pull request, or run the check again.</p>
<h1 lang="zh-Hans">链接已失效</h1>
<p lang="zh-Hans">报告链接的有效期为 ${days} 天；报告不再保存时（例如仓库卸载了本 App），链接提前失效。</p>
<p lang="zh-Hans">PR 未关闭时，评论中的链接通常会在到期前自动更新。需要立即得到新链接，可在 PR 中评论 <code>/npu-advise run</code>，或重新运行检查。</p>
</main></body></html>
`;
}
