/** The pages of `npu-advise setup`. Nothing on them comes from elsewhere and nothing runs. */
import type { L10n, Lang } from '../../model/lang.ts';

export interface Page {
  readonly status: number;
  readonly body: string;
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;').replaceAll("'", '&#39;');

function page(lang: Lang, status: number, title: string, content: string): Page {
  const body = `<!doctype html>
<html lang="${lang === 'zh' ? 'zh-CN' : 'en'}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escaped(title)}</title>
<style>:root{color-scheme:light dark}body{font:16px/1.6 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem}code{overflow-wrap:anywhere}button{font:inherit;padding:.5rem 1rem}</style></head>
<body><main><h1>${escaped(title)}</h1>
${content}
</main></body></html>
`;
  return { status, body };
}

export function startPage(lang: Lang, { action, manifest, name }: { action: string; manifest: string; name: string }): Page {
  const text =
    lang === 'en'
      ? [
          'Register the GitHub App',
          'GitHub shows the permissions and asks for a last confirmation; then it leads back here.',
          `Register “${name}” on GitHub`,
        ]
      : ['注册 GitHub App', 'GitHub 显示所需权限并要求最后确认，随后跳转回此页。', `在 GitHub 上注册「${name}」`];
  return page(
    lang,
    200,
    text[0]!,
    `<p>${escaped(text[1]!)}</p>
<form action="${escaped(action)}" method="post"><input type="hidden" name="manifest" value="${escaped(manifest)}"><button type="submit">${escaped(text[2]!)}</button></form>`,
  );
}

export function donePage(lang: Lang, { envPath, keyPath, installUrl }: { envPath: string; keyPath: string; installUrl: string }): Page {
  const [title, files, next] =
    lang === 'en'
      ? ['The App is registered', 'Its settings and its private key are in', 'Install it on your repositories']
      : ['App 已注册', '配置与私钥已写入', '安装到仓库'];
  return page(
    lang,
    200,
    title!,
    `<p>${escaped(files!)} <code>${escaped(envPath)}</code>, <code>${escaped(keyPath)}</code>.</p><p><a href="${escaped(installUrl)}">${escaped(next!)}</a></p>`,
  );
}

const FAILURES: Readonly<Record<'state' | 'code' | 'used' | 'unreachable', L10n>> = {
  state: {
    en: 'This link does not come from the page that was opened here. Start again from the first page.',
    zh: '该链接不是由本页发起的。请从首页重新开始。',
  },
  code: { en: 'GitHub led back without a code. Start again from the first page.', zh: 'GitHub 未返回 code。请从首页重新开始。' },
  used: {
    en: 'GitHub does not take this code: it holds for an hour and for one use. Delete the app on GitHub and start again.',
    zh: 'GitHub 不接受该 code：一小时内有效且只能使用一次。请在 GitHub 上删除该 App 后重新开始。',
  },
  unreachable: {
    en: 'GitHub could not be asked from this machine. Reload this page to try again.',
    zh: '本机无法访问 GitHub。请刷新本页重试。',
  },
};

export function failedPage(lang: Lang, status: number, why: keyof typeof FAILURES): Page {
  return page(
    lang,
    status,
    lang === 'en' ? 'Not registered' : '未注册',
    `<p>${escaped(FAILURES[why][lang])}</p><p><a href="/">${lang === 'en' ? 'First page' : '首页'}</a></p>`,
  );
}
