/** Whether the store can be opened, and in which state it is. Looks only: nothing is migrated. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { AdviseError } from '../../base/errors.ts';
import { openEmbeddedFiles } from '../../store/embedded/database.ts';
import { lockFolder } from '../../store/embedded/folder-lock.ts';
import { readSchemaVersion } from '../../store/migrations.ts';
import type { Sql } from '../../store/ports.ts';
import type { ServerOptions } from '../env.ts';
import { bad, both, look, type Outcome, ok } from './outcome.ts';

const CONNECT_MS = 8000;
/** pg-boss needs 13. */
const LEAST_POSTGRES = 150_000;

const TITLE = both('Store', '存储');

async function judgeSchema(sql: Sql, what: { en: string; zh: string }): Promise<ReturnType<typeof ok>> {
  const { found, known } = await readSchemaVersion(sql);
  if (found === null) return ok(both(`${what.en}, empty: it is set up at the first start`, `${what.zh}，为空：首次启动时初始化`));
  const text = both(`${what.en}, schema ${found}`, `${what.zh}，结构版本 ${found}`);
  if (found > known)
    return bad(
      both(`${text.en}, written by a newer version (this one knows ${known})`, `${text.zh}，由更新的版本写入（本版本只认到 ${known}）`),
      both('Use that version again, or a newer one: there is no way back.', '请改用该版本或更新版本：结构不可回退。'),
    );
  return ok(found < known ? both(`${text.en}, brought to ${known} at the next start`, `${text.zh}，下次启动时升级到 ${known}`) : text);
}

async function checkEmbedded(dataDir: string): Promise<ReturnType<typeof ok>> {
  let lock: ReturnType<typeof lockFolder>;
  try {
    lock = lockFolder(dataDir);
  } catch (error) {
    if (error instanceof AdviseError && error.code === 'store-in-use') {
      const owner = /process \d+ on \S+/.exec(error.message)?.[0] ?? 'another process';
      return ok(both(`embedded, in use by ${owner}: the running server`, `内置存储，正由 ${owner} 使用（即运行中的服务）`));
    }
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    return bad(
      both(`the lock of ${dataDir} cannot be taken (${code})`, `无法取得 ${dataDir} 的锁（${code}）`),
      both('See the line "Data folder".', '见「数据目录」一行。'),
    );
  }
  try {
    const what = both('embedded', '内置存储');
    if (!existsSync(join(dataDir, 'pglite')))
      return ok(both(`${what.en}, none yet: set up at the first start`, `${what.zh}，尚无：首次启动时创建`));
    const database = await openEmbeddedFiles(dataDir).catch(() => null);
    if (database === null)
      return bad(
        both(`the files in ${join(dataDir, 'pglite')} cannot be opened`, `无法打开 ${join(dataDir, 'pglite')} 中的文件`),
        both(
          'Put a backup in its place, or move the folder away to start anew; reports are made again on the next push.',
          '请用备份替换，或移走该目录后重新开始；下次推送会重新生成报告。',
        ),
      );
    try {
      return await judgeSchema(database, what);
    } finally {
      await database.close();
    }
  } finally {
    lock.release();
  }
}

/** What a code of PostgreSQL or of the system means for whoever set DATABASE_URL. */
export function explainDatabase(code: string): { en: string; zh: string } {
  if (/^28/.test(code))
    return both('User or password in DATABASE_URL are refused: correct them.', 'DATABASE_URL 的用户名或密码被拒绝：请更正。');
  if (code === '3D000')
    return both('Create the database, or correct its name in DATABASE_URL.', '请创建该数据库，或更正 DATABASE_URL 中的库名。');
  if (code === '53300')
    return both(
      'The server has no connection left: raise max_connections, or stop what holds them.',
      '数据库连接已用尽：请调大 max_connections 或释放连接。',
    );
  if (/^E?(NOTFOUND|AI_AGAIN)$/.test(code))
    return both('The host in DATABASE_URL is not known here: correct it.', '无法解析 DATABASE_URL 中的主机名：请更正。');
  if (/CERT|SIGNATURE|SELF_SIGNED/.test(code))
    return both('Its certificate is not trusted: set NODE_EXTRA_CA_CERTS.', '不信任其证书：请设置 NODE_EXTRA_CA_CERTS。');
  return both('Start the database, and let this machine reach its host and port.', '请启动数据库，并放通本机到其主机与端口的网络。');
}

async function checkPostgres(url: string): Promise<ReturnType<typeof ok>> {
  let client: pg.Client;
  try {
    client = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: CONNECT_MS,
      application_name: 'npu-advisor doctor',
    });
    client.on('error', () => undefined);
    await client.connect();
  } catch (error) {
    const { code, message } = error as { code?: unknown; message?: string };
    const name = typeof code === 'string' && /^\w{3,40}$/.test(code) ? code : /timeout/i.test(message ?? '') ? 'ETIMEDOUT' : 'no answer';
    return bad(both(`PostgreSQL cannot be used (${name})`, `PostgreSQL 不可用（${name}）`), explainDatabase(name));
  }
  try {
    const sql: Sql = { query: async <Row extends object>(text: string) => (await client.query(text)).rows as Row[] };
    const [row] = await sql.query<{ number: string; version: string; creates: boolean }>(
      `SELECT current_setting('server_version_num') AS number, current_setting('server_version') AS version,
       has_database_privilege(current_database(), 'CREATE') AS creates`,
    );
    const what = both(`PostgreSQL ${row!.version}`, `PostgreSQL ${row!.version}`);
    if (Number(row!.number) < LEAST_POSTGRES) return bad(what, both('Use PostgreSQL 15 or newer.', '请使用 PostgreSQL 15 或更新版本。'));
    const judged = await judgeSchema(sql, what);
    const isNew = (await readSchemaVersion(sql)).found === null;
    if (isNew && row!.creates !== true)
      return bad(
        both(`${what.en}, empty`, `${what.zh}，为空`),
        both('Grant CREATE on the database to this user.', '请授予该用户在此库上的 CREATE 权限。'),
      );
    return judged;
  } finally {
    await client.end().catch(() => undefined);
  }
}

export function checkStore({ databaseUrl, dataDir }: Pick<ServerOptions, 'databaseUrl' | 'dataDir'>): Promise<Outcome> {
  return look('store', TITLE, () => (databaseUrl === null ? checkEmbedded(dataDir) : checkPostgres(databaseUrl)));
}

/** Whether the server of this environment runs on this machine, and is ready. */
export function checkServer({ host, port }: Pick<ServerOptions, 'host' | 'port'>): Promise<Outcome> {
  return look('server', both('Server', '服务'), async () => {
    const to = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host;
    const address = `${to}:${port}`;
    if (port === 0) return { state: 'skipped', found: both('PORT is 0, any free one', 'PORT 为 0（任意空闲端口）'), todo: null };
    let answer: Response;
    try {
      answer = await fetch(`http://${address}/readyz`, { signal: AbortSignal.timeout(CONNECT_MS) });
    } catch {
      return { state: 'skipped', found: both(`nothing listens on ${address}: not started yet`, `${address} 无监听：尚未启动`), todo: null };
    }
    const text = (await answer.text()).trim().slice(0, 200);
    if (answer.ok && text === 'ready') return ok(both(`runs on ${address} and is ready`, `在 ${address} 运行且就绪`));
    if (answer.status === 503)
      return bad(
        both(`runs on ${address} and is not ready: ${text}`, `在 ${address} 运行但未就绪：${text}`),
        both('See its log.', '请查看其日志。'),
      );
    return bad(
      both(`something else listens on ${address}`, `${address} 被其他程序占用`),
      both('Choose another PORT, or stop that program.', '请更换 PORT，或停止该程序。'),
    );
  });
}
