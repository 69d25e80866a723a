/** What GitHub says of the app: whether it takes the key, what it grants, where it sends webhooks and how they arrived. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { createGitHub, type Octokit, statusOf } from '../../github/client.ts';
import { WEBHOOK_PATH } from '../../github/front.ts';
import { createLogger } from '../../github/log.ts';
import type { L10n } from '../../model/lang.ts';
import { bad, both, look, type Outcome, ok, skipped } from './outcome.ts';

interface Manifest {
  readonly default_permissions: Readonly<Record<string, string>>;
  readonly default_events: readonly string[];
}

/** A clock that is further off makes tokens and signed addresses look expired; JWTs are dated back by 30 s. */
const MAX_SKEW_S = 30;
const TIMEOUT_MS = 15_000;
const RECENT_DELIVERIES = 50;
const NAMED = 5;

const LEVELS = ['none', 'read', 'write', 'admin'];

/** What the product needs: its own manifest, as it is shipped. */
function readManifest(): Manifest {
  return parse(readFileSync(new URL('../../../app.yml', import.meta.url), 'utf8')) as Manifest;
}

/** Permissions that are wanted and not granted, such as `checks: write`. */
export function missingPermissions(granted: Readonly<Record<string, unknown>>, wanted: Readonly<Record<string, string>>): string[] {
  return Object.entries(wanted)
    .filter(([name, level]) => LEVELS.indexOf(String(granted[name] ?? 'none')) < LEVELS.indexOf(level))
    .map(([name, level]) => `${name}: ${level}`);
}

function list(items: readonly string[]): string {
  return items.length <= NAMED ? items.join(', ') : `${items.slice(0, NAMED).join(', ')}, … (${items.length})`;
}

/** Codes of the system and of the library that makes requests, wherever in the chain of causes they are. */
function codesOf(error: unknown): string[] {
  const codes: string[] = [];
  let at = error as { code?: unknown; cause?: unknown; errors?: unknown[]; name?: unknown } | undefined;
  for (let depth = 0; depth < 6 && at !== undefined && at !== null; depth++) {
    if (typeof at.code === 'string') codes.push(at.code);
    if (at.name === 'TimeoutError' || at.name === 'AbortError') codes.push('TIMEOUT');
    at = (at.cause ?? at.errors?.[0]) as typeof at;
  }
  return codes;
}

/** Why GitHub could not be asked, and what to do. */
export function explainUnreachable(error: unknown, apiUrl: string): { found: L10n; todo: L10n } {
  const codes = codesOf(error);
  const host = new URL(apiUrl).host;
  const code = codes.at(-1) ?? 'no answer';
  const is = (pattern: RegExp): boolean => codes.some((each) => pattern.test(each));
  if (is(/CERT|SIGNATURE|SELF_SIGNED|ALTNAME/)) {
    return {
      found: both(`the certificate of ${host} is not trusted (${code})`, `不信任 ${host} 的证书（${code}）`),
      todo: both(
        'Set NODE_EXTRA_CA_CERTS to the PEM file of the authority that signed it, before the process starts.',
        '请在进程启动前将 NODE_EXTRA_CA_CERTS 设为签发该证书的 CA 的 PEM 文件。',
      ),
    };
  }
  if (is(/ENOTFOUND|EAI_AGAIN/)) {
    return {
      found: both(`the name ${host} is not known here (${code})`, `无法解析 ${host}（${code}）`),
      todo: both(
        'Check GHE_HOST and the name server of this machine; behind a proxy see the line "Proxy".',
        '请检查 GHE_HOST 与本机 DNS；若经代理，请看「代理与证书」一行。',
      ),
    };
  }
  return {
    found: both(`${host} does not answer (${code})`, `${host} 无响应（${code}）`),
    todo: both(
      'Let this machine reach that host (firewall, network policy), or set HTTPS_PROXY and NODE_USE_ENV_PROXY=1.',
      '请放通本机到该主机的网络（防火墙、网络策略），或设置 HTTPS_PROXY 与 NODE_USE_ENV_PROXY=1。',
    ),
  };
}

interface App {
  readonly slug: string;
  readonly permissions: Readonly<Record<string, unknown>>;
  readonly events: readonly string[];
  readonly htmlUrl: string;
}

/** Everything that GitHub tells. Asks it five things; changes nothing. */
export async function checkGitHub(credentials: { appId: number; privateKey: string }, apiUrl: string): Promise<Outcome[]> {
  let skewS: number | null = null;
  const github = createGitHub({
    ...credentials,
    apiUrl,
    userAgent: 'npu-advisor/doctor',
    throttle: false,
    log: createLogger('silent'),
    onExchange({ headers }) {
      const date = Date.parse(headers?.get('date') ?? '');
      // The first answer tells: later ones may have waited.
      if (skewS === null && Number.isFinite(date)) skewS = (Date.now() - date) / 1000;
    },
  });
  const manifest = readManifest();
  let app: App | null = null;
  let unreachable: { found: L10n; todo: L10n } | null = null;

  const identity = await look('github', both('GitHub', 'GitHub'), async () => {
    try {
      const { data } = await github.app.request('GET /app', { request: { signal: AbortSignal.timeout(TIMEOUT_MS) } });
      if (data === null || typeof data.slug !== 'string') throw new Error('no app');
      app = { slug: data.slug, permissions: data.permissions, events: data.events, htmlUrl: data.html_url };
      return ok(both(`${apiUrl} knows the app as ${data.slug}`, `${apiUrl} 认得该 App：${data.slug}`));
    } catch (error) {
      const status = codesOf(error).length > 0 ? null : statusOf(error);
      if (status === 401)
        return bad(
          both('GitHub does not accept the private key', 'GitHub 不接受该私钥'),
          both(
            'APP_ID and PRIVATE_KEY are of different apps, the key was deleted, or the clock is wrong: compare both with the settings page of the app.',
            'APP_ID 与 PRIVATE_KEY 不属于同一个 App、密钥已删除，或本机时钟有误：请与 App 设置页核对。',
          ),
        );
      if (status === 404)
        return bad(
          both(`there is no app with this APP_ID at ${apiUrl}`, `${apiUrl} 上没有该 APP_ID 的 App`),
          both(
            'Copy the App ID from the settings page; for an Enterprise Server set GHE_HOST.',
            '请从设置页复制 App ID；若为 GitHub Enterprise Server 请设置 GHE_HOST。',
          ),
        );
      if (status !== null && codesOf(error).length === 0 && hasAnswer(error))
        return bad(
          both(`GitHub answers ${status}`, `GitHub 返回 ${status}`),
          both(
            'Try again in some minutes; if it stays, see the status page of GitHub.',
            '请几分钟后重试；若仍如此，请查看 GitHub 状态页。',
          ),
        );
      unreachable = explainUnreachable(error, apiUrl);
      return bad(unreachable.found, unreachable.todo);
    }
  });
  const clock = await look('clock', both('Clock', '时钟'), () => {
    if (skewS === null) return skipped(both('GitHub did not answer', 'GitHub 未响应'));
    const text = `${Math.abs(skewS).toFixed(0)} s`;
    const found =
      Math.abs(skewS) < 2
        ? both('agrees with GitHub', '与 GitHub 一致')
        : both(`${text} ${skewS > 0 ? 'ahead of' : 'behind'} GitHub`, `比 GitHub ${skewS > 0 ? '快' : '慢'} ${text}`);
    if (Math.abs(skewS) <= MAX_SKEW_S) return ok(found);
    return bad(
      found,
      both('Synchronise the clock of this machine (chrony, systemd-timesyncd).', '请同步本机时钟（chrony 或 systemd-timesyncd）。'),
    );
  });
  if (app === null) {
    const because = both('GitHub did not accept the app, see above', 'GitHub 未接受该 App，见上');
    const rest = [
      ['permissions', both('Permissions and events', '权限与事件')],
      ['installations', both('Installations', '安装')],
      ['webhook', both('Webhook address', 'Webhook 地址')],
      ['deliveries', both('Webhook deliveries', 'Webhook 投递')],
    ] as const;
    return [identity, clock, ...rest.map(([id, title]): Outcome => ({ id, title, ...skipped(because) }))];
  }
  return [
    identity,
    clock,
    await checkPermissions(app, manifest),
    await checkInstallations(github.app, app, manifest),
    await checkWebhook(github.app),
    await checkDeliveries(github.app),
  ];
}

function hasAnswer(error: unknown): boolean {
  return (error as { response?: unknown }).response !== undefined;
}

function checkPermissions({ permissions, events, htmlUrl }: App, manifest: Manifest): Promise<Outcome> {
  return look('permissions', both('Permissions and events', '权限与事件'), () => {
    const missing = missingPermissions(permissions, manifest.default_permissions);
    const unheard = manifest.default_events.filter((event) => !events.includes(event));
    const more = missingPermissions(manifest.default_permissions, permissions as Record<string, string>);
    if (missing.length + unheard.length > 0) {
      const parts = (permission: string, event: string): string =>
        [
          ...(missing.length > 0 ? [`${permission} ${list(missing)}`] : []),
          ...(unheard.length > 0 ? [`${event} ${list(unheard)}`] : []),
        ].join('; ');
      return bad(
        both(`lacks ${parts('permission', 'event')}`, `缺少${parts('权限', '事件')}`),
        both(
          `Add them on the settings page of the app (${htmlUrl}, "Permissions & events"); every installation must then accept.`,
          `请在 App 设置页（${htmlUrl} 的「Permissions & events」）添加；之后每个安装都需批准。`,
        ),
      );
    }
    if (more.length === 0) return ok(both('exactly what app.yml lists', '与 app.yml 所列一致'));
    return ok(
      both(`all that app.yml lists, and more: ${list(more)}`, `包含 app.yml 所列全部，且更多：${list(more)}`),
      both('It never uses those; take them away.', '这些权限不会被使用，建议收回。'),
    );
  });
}

function checkInstallations(octokit: Octokit, app: App, manifest: Manifest): Promise<Outcome> {
  return look('installations', both('Installations', '安装'), async () => {
    const { data } = await octokit.request('GET /app/installations', { per_page: 100 });
    if (data.length === 0)
      return skipped(
        both('the app is installed nowhere yet', '尚未在任何账号安装'),
        both(`Install it on a repository: ${app.htmlUrl}/installations/new`, `请安装到仓库：${app.htmlUrl}/installations/new`),
      );
    const active = data.filter(({ suspended_at: suspendedAt }) => suspendedAt === null);
    const behind = active.flatMap((installation) => {
      const missing = missingPermissions(installation.permissions, manifest.default_permissions);
      const { account } = installation;
      const name = account !== null && 'login' in account ? account.login : String(installation.id);
      return missing.length === 0 ? [] : [`${name} (${list(missing)})`];
    });
    const count = data.length === 100 ? '100+' : String(data.length);
    const asleep = data.length - active.length;
    const found = both(
      `${count}${asleep > 0 ? `, ${asleep} suspended` : ''}${behind.length > 0 ? `; not accepted by ${list(behind)}` : ''}`,
      `${count} 个${asleep > 0 ? `，其中 ${asleep} 个已暂停` : ''}${behind.length > 0 ? `；尚未批准：${list(behind)}` : ''}`,
    );
    if (behind.length === 0) return ok(found);
    return bad(
      found,
      both(
        'An owner of each account must accept the new permissions (GitHub sent a mail).',
        '请各账号的所有者批准新权限（GitHub 已发邮件）。',
      ),
    );
  });
}

/** Settings of the app's webhook, as GitHub tells them. */
export interface WebhookConfig {
  readonly url?: string | undefined;
  readonly content_type?: string | undefined;
  readonly secret?: string | undefined;
  readonly insecure_ssl?: string | number | undefined;
}

export function judgeWebhook(config: WebhookConfig): ReturnType<typeof ok> {
  const url = URL.canParse(config.url ?? '') ? new URL(config.url!) : null;
  if (url === null)
    return bad(
      both('no address is set', '未设置地址'),
      both(`Set it to https://YOUR-HOST${WEBHOOK_PATH} and tick "Active".`, `请设为 https://YOUR-HOST${WEBHOOK_PATH} 并勾选「Active」。`),
    );
  const shown = both(`${url.origin}${url.pathname}`, `${url.origin}${url.pathname}`);
  const wrong: L10n[] = [];
  if (url.pathname !== WEBHOOK_PATH) wrong.push(both(`The path must be ${WEBHOOK_PATH}.`, `路径须为 ${WEBHOOK_PATH}。`));
  if (config.content_type !== 'json') wrong.push(both('Choose content type application/json.', '内容类型请选 application/json。'));
  if ((config.secret ?? '') === '') wrong.push(both('Set the secret, the same as WEBHOOK_SECRET.', '请设置与 WEBHOOK_SECRET 相同的密钥。'));
  if (String(config.insecure_ssl ?? '0') !== '0') wrong.push(both('Enable SSL verification.', '请启用 SSL 验证。'));
  if (wrong.length === 0) return ok(shown);
  return bad(shown, both(wrong.map(({ en }) => en).join(' '), wrong.map(({ zh }) => zh).join('')));
}

function checkWebhook(octokit: Octokit): Promise<Outcome> {
  return look('webhook', both('Webhook address', 'Webhook 地址'), async () => {
    try {
      const { data } = await octokit.request('GET /app/hook/config');
      return judgeWebhook(data);
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
      return judgeWebhook({});
    }
  });
}

/** One attempt of GitHub to deliver, newest first in lists. */
export interface Attempt {
  readonly statusCode: number;
  readonly at: number;
}

/** Judges by the newest attempt: what failed before it has been seen to. */
export function judgeDeliveries(attempts: readonly Attempt[], now: number): ReturnType<typeof ok> {
  const [newest] = attempts;
  if (newest === undefined)
    return skipped(
      both('GitHub has sent none yet', 'GitHub 尚未投递'),
      both('Open a pull request where the app is installed, then run this again.', '请在已安装的仓库新建一个 PR 后重试。'),
    );
  const isGood = ({ statusCode }: Attempt): boolean => statusCode >= 200 && statusCode < 300;
  const failed = attempts.filter((attempt) => !isGood(attempt)).length;
  const ago = Math.max(0, Math.round((now - newest.at) / 60_000));
  const last = both(`the last ${ago} min ago was answered ${newest.statusCode}`, `最近一次在 ${ago} 分钟前，返回 ${newest.statusCode}`);
  if (isGood(newest)) {
    if (failed === 0)
      return ok(both(`${last.en}; all of the last ${attempts.length} arrived`, `${last.zh}；最近 ${attempts.length} 次全部送达`));
    return ok(
      both(
        `${last.en}; ${failed} of the last ${attempts.length} did not arrive`,
        `${last.zh}；最近 ${attempts.length} 次中 ${failed} 次未送达`,
      ),
      both('The server asks for those again by itself.', '服务会自动请求重新投递。'),
    );
  }
  const found = both(
    `${last.en}; ${failed} of the last ${attempts.length} failed`,
    `${last.zh}；最近 ${attempts.length} 次中 ${failed} 次失败`,
  );
  const { statusCode } = newest;
  if (statusCode === 401)
    return bad(
      found,
      both('The secret of the app and WEBHOOK_SECRET differ: set both to the same.', 'App 的密钥与 WEBHOOK_SECRET 不一致：请设为相同。'),
    );
  if (statusCode === 404 || statusCode === 405)
    return bad(
      found,
      both(`Another server answers there: lead ${WEBHOOK_PATH} to this one.`, `该地址由其他服务应答：请将 ${WEBHOOK_PATH} 转发到本服务。`),
    );
  if (statusCode === 504)
    return bad(
      found,
      both(
        'The server took longer than 10 s, or the proxy waits for it: see its log and npu_advisor_webhook_answer_seconds.',
        '响应超过 10 秒：请查看服务日志与 npu_advisor_webhook_answer_seconds。',
      ),
    );
  if (statusCode === 0 || statusCode === 502 || statusCode === 503)
    return bad(
      found,
      both(
        'GitHub does not reach the address: is the server up, the name public, its certificate valid, the port open?',
        'GitHub 无法访问该地址：请确认服务已启动、域名可公开解析、证书有效、端口开放。',
      ),
    );
  return bad(
    found,
    both(
      'See the log of the server at that time, and the delivery on the settings page of the app.',
      '请查看当时的服务日志与 App 设置页的投递记录。',
    ),
  );
}

function checkDeliveries(octokit: Octokit): Promise<Outcome> {
  return look('deliveries', both('Webhook deliveries', 'Webhook 投递'), async () => {
    try {
      const { data } = await octokit.request('GET /app/hook/deliveries', { per_page: RECENT_DELIVERIES });
      return judgeDeliveries(
        data.map(({ status_code: statusCode, delivered_at: at }) => ({ statusCode, at: Date.parse(at) })),
        Date.now(),
      );
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
      return skipped(both('this GitHub keeps no log of deliveries', '该 GitHub 不保存投递记录'));
    }
  });
}
