/** `npu-advise setup`: registers the App by GitHub's manifest flow. A page on this machine leads to GitHub, which leads back with a code. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import { withoutTrailing } from '../../base/endings.ts';
import { AdviseError } from '../../base/errors.ts';
import { createAnonymousClient, statusOf } from '../../github/client.ts';
import { WEBHOOK_PATH } from '../../github/front.ts';
import type { Lang } from '../../model/lang.ts';
import { gitHubAddresses } from '../env.ts';
import { donePage, failedPage, type Page, startPage } from './pages.ts';

export interface SetupOptions {
  /** Where GitHub reaches the server. */
  readonly url: string;
  readonly org: string | null;
  readonly name: string;
  readonly out: string;
  readonly port: string;
  readonly lang: Lang;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** How long the page waits for somebody to come back. */
const WAIT_MS = 60 * 60_000;

/** Files that are made before anybody is asked for anything: a code of GitHub can be used once. */
interface Reserved {
  readonly envPath: string;
  readonly keyPath: string;
  write(env: string, key: string): void;
  drop(): void;
}

function reserve(out: string): Reserved {
  const envPath = resolve(out);
  const keyPath = join(dirname(envPath), `${basename(envPath).replace(/^\./, '') || 'npu-advisor'}.private-key.pem`);
  const opened: { path: string; file: number }[] = [];
  const drop = (): void => {
    for (const { path, file } of opened) {
      closeSync(file);
      rmSync(path, { force: true });
    }
  };
  for (const path of [envPath, keyPath]) {
    try {
      opened.push({ path, file: openSync(path, 'wx', 0o600) });
    } catch (error) {
      drop();
      const { code } = error as NodeJS.ErrnoException;
      const isThere = code === 'EEXIST';
      throw new AdviseError(
        'setup',
        isThere ? `${path} exists` : `${path} cannot be written (${code})`,
        isThere ? 'Choose another file with --out: what is there is never overwritten.' : 'Choose another file with --out.',
      );
    }
  }
  return {
    envPath,
    keyPath,
    write(env, key) {
      for (const [index, text] of [env, key].entries()) {
        writeSync(opened[index]!.file, text);
        closeSync(opened[index]!.file);
      }
    },
    drop,
  };
}

function publicAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && url.protocol === 'https:' && `${url.username}${url.password}${url.search}${url.hash}` === '')
    return withoutTrailing(url.href, '/');
  throw new AdviseError(
    'setup',
    { en: '--url must be an https address without user, query or fragment', zh: '--url 须为 https 地址，不含用户名、查询参数与片段' },
    {
      en: 'Give the address of the reverse proxy or tunnel, such as https://npu-advisor.example; it need not answer yet.',
      zh: '给出反向代理或隧道的地址，例如 https://npu-advisor.example；此时无需能够访问。',
    },
  );
}

/** The manifest as GitHub takes it: `app.yml` with the addresses of this server. */
function manifestFor({ name, url }: { name: string; url: string }, redirectUrl: string): Record<string, unknown> {
  const shipped = parse(readFileSync(new URL('../../../app.yml', import.meta.url), 'utf8')) as Record<string, unknown>;
  return {
    ...shipped,
    name,
    url,
    hook_attributes: { url: `${url}${WEBHOOK_PATH}`, active: true },
    redirect_url: redirectUrl,
  };
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** A value as every reader of such files takes it: none of ours holds quotes, line breaks or backslashes. */
function line(name: string, value: string): string {
  if (!/^[\x21-\x7e]+( [\x21-\x7e]+)*$/.test(value) || /["'\\$`#]/.test(value))
    throw new Error(`${name} cannot be written to a file of variables`);
  return `${name}=${value}\n`;
}

/** Serves the page until the App is registered. Resolves once the files are written. */
export async function setUp(env: Environment, options: SetupOptions, write: (text: string) => void): Promise<void> {
  const { lang, org } = options;
  const url = publicAddress(options.url);
  const port = Number(options.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new AdviseError(
      'setup',
      { en: '--port must be a number from 0 to 65535', zh: '--port 须为 0～65535 之间的数' },
      { en: 'Leave it out to use 3000.', zh: '不给出时使用 3000。' },
    );
  if (org !== null && !/^[\w.-]{1,100}$/.test(org))
    throw new AdviseError(
      'setup',
      { en: '--org is not the name of an organisation', zh: '--org 不是组织名' },
      { en: 'Give its login, as in its address.', zh: '给出其地址中的登录名。' },
    );
  const { apiUrl, webUrl } = gitHubAddresses(env);
  const files = reserve(options.out);
  const state = randomBytes(24).toString('hex');
  const server = createServer();
  let isWritten = false;
  try {
    server.listen(port, '127.0.0.1');
    await Promise.race([once(server, 'listening'), once(server, 'error').then(([error]) => Promise.reject(error))]).catch(
      (error: unknown) => {
        const { code } = error as NodeJS.ErrnoException;
        throw new AdviseError(
          'setup',
          { en: `port ${port} cannot be used (${code})`, zh: `端口 ${port} 无法使用（${code}）` },
          { en: 'Choose another one with --port.', zh: '用 --port 另选端口。' },
        );
      },
    );
    const own = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const manifest = manifestFor({ name: options.name, url }, `${own}/done`);
    const action = `${webUrl}${org === null ? '' : `/organizations/${org}`}/settings/apps/new?state=${state}`;

    const finished = new Promise<void>((fulfil, reject) => {
      const timer = setTimeout(
        () =>
          reject(
            new AdviseError(
              'setup',
              { en: 'nobody came back from GitHub within an hour', zh: '一小时内没有从 GitHub 返回' },
              { en: 'Start it again.', zh: '重新启动该命令。' },
            ),
          ),
        WAIT_MS,
      );
      timer.unref();
      const convert = async (query: URLSearchParams): Promise<Page> => {
        const code = query.get('code') ?? '';
        // Only who started here may bring a code back: another one would make this server somebody else's app.
        if (!isEqual(query.get('state') ?? '', state)) return failedPage(lang, 400, 'state');
        if (!/^[\w-]{1,200}$/.test(code)) return failedPage(lang, 400, 'code');
        let app: Awaited<ReturnType<typeof conversion>>;
        try {
          app = await conversion(apiUrl, code);
        } catch (error) {
          return failedPage(lang, 502, statusOf(error) === 404 || statusOf(error) === 422 ? 'used' : 'unreachable');
        }
        files.write(
          [
            line('APP_ID', String(app.id)),
            line('PRIVATE_KEY_PATH', files.keyPath),
            line('WEBHOOK_SECRET', app.webhookSecret),
            ...['GHE_HOST', 'GHE_PROTOCOL'].flatMap((name) => (env[name] ? [line(name, env[name])] : [])),
          ].join(''),
          app.pem,
        );
        isWritten = true;
        write(told(lang, files, app.htmlUrl));
        clearTimeout(timer);
        fulfil();
        return donePage(lang, { envPath: files.envPath, keyPath: files.keyPath, installUrl: `${app.htmlUrl}/installations/new` });
      };
      server.on('request', (request: IncomingMessage, response: ServerResponse) => {
        void respond(request, own, convert, () => startPage(lang, { action, manifest: JSON.stringify(manifest), name: options.name })).then(
          ({ status, body }) => send(response, status, body, new URL(webUrl).origin),
          (error: unknown) => {
            reject(error instanceof Error ? error : new Error(String(error)));
            send(response, 500, 'failed', 'https://github.com');
          },
        );
      });
    });
    write(
      lang === 'en'
        ? `Open ${own}/ in a browser on this machine (from elsewhere: ssh -L ${port}:127.0.0.1:${port} …).\n`
        : `请在本机浏览器打开 ${own}/（远程机器可用 ssh -L ${port}:127.0.0.1:${port} …）。\n`,
    );
    await finished;
  } finally {
    if (!isWritten) files.drop();
    // The last page may still be on its way.
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeIdleConnections();
      setTimeout(() => server.closeAllConnections(), 1000).unref();
    });
  }
}

async function respond(
  request: IncomingMessage,
  own: string,
  convert: (query: URLSearchParams) => Promise<Page>,
  start: () => Page,
): Promise<Page> {
  // A page of another name that was made to lead here is none of ours.
  if (![new URL(own).host, `localhost:${new URL(own).port}`].includes(request.headers.host ?? ''))
    return { status: 421, body: 'not this host' };
  const url = new URL(request.url ?? '/', own);
  if (request.method !== 'GET') return { status: 405, body: 'use GET' };
  if (url.pathname === '/') return start();
  if (url.pathname === '/done') return convert(url.searchParams);
  return { status: 404, body: 'not found' };
}

function send(response: ServerResponse, status: number, body: string, formTarget: string): void {
  if (response.headersSent) return;
  const bytes = Buffer.from(body);
  response
    .writeHead(status, {
      'content-type': body.startsWith('<') ? 'text/html; charset=utf-8' : 'text/plain; charset=utf-8',
      'content-length': bytes.length,
      'content-security-policy': `default-src 'none'; style-src 'unsafe-inline'; form-action ${formTarget}; frame-ancestors 'none'; base-uri 'none'`,
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
      connection: 'close',
    })
    .end(bytes);
}

async function conversion(apiUrl: string, code: string): Promise<{ id: number; htmlUrl: string; webhookSecret: string; pem: string }> {
  const { data } = await createAnonymousClient(apiUrl).request('POST /app-manifests/{code}/conversions', { code });
  return { id: data.id, htmlUrl: data.html_url, webhookSecret: data.webhook_secret ?? '', pem: data.pem };
}

function told(lang: Lang, { envPath, keyPath }: Reserved, htmlUrl: string): string {
  return lang === 'en'
    ? `The App is registered: ${htmlUrl}\nSettings: ${envPath}\nPrivate key: ${keyPath} (keep it; GitHub does not show it again)\nNext: install it (${htmlUrl}/installations/new), then\n  npu-advise doctor --env ${envPath}\n  npu-advise serve --env ${envPath}\n`
    : `App 已注册：${htmlUrl}\n配置：${envPath}\n私钥：${keyPath}（请妥善保存，GitHub 不会再次显示）\n下一步：安装该 App（${htmlUrl}/installations/new），然后\n  npu-advise doctor --env ${envPath}\n  npu-advise serve --env ${envPath}\n`;
}
