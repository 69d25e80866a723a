/** What the environment says, variable by variable: a server stops at the first mistake, here all of them are named. */
import { createPrivateKey, type KeyObject } from 'node:crypto';
import { AdviseError, messageOf } from '../../base/errors.ts';
import { readEnv, type ServerOptions } from '../env.ts';
import { bad, both, look, type Outcome, ok } from './outcome.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Stand-ins that pass, so that each variable is judged by itself. Never used for anything else. */
const PASSING = { APP_ID: '1', PRIVATE_KEY: '-----BEGIN PRIVATE KEY-----', WEBHOOK_SECRET: 'x'.repeat(32), WEBHOOK_SECRET_PREVIOUS: '' };

/** The environment as if it held one credential only, all others being fine. */
function only(env: Environment, ...names: readonly string[]): ServerOptions {
  return readEnv({ ...PASSING, ...Object.fromEntries(names.map((name) => [name, env[name]])) });
}

function refusal(error: unknown): ReturnType<typeof bad> {
  if (!(error instanceof AdviseError)) {
    const code = (error as NodeJS.ErrnoException).code ?? messageOf(error);
    return bad(
      both(`cannot be read (${code})`, `无法读取（${code}）`),
      both('Correct the path or its permissions.', '请更正路径或其权限。'),
    );
  }
  const { en, zh } = error.told;
  return bad(both(en.message, zh.message), both(en.hint, zh.hint));
}

export interface Settings {
  readonly outcomes: readonly Outcome[];
  /** null: something is wrong that everything else builds on. */
  readonly options: ServerOptions | null;
  /** null: app id or key cannot be used. */
  readonly credentials: { readonly appId: number; readonly privateKey: string } | null;
}

/** A key as GitHub gives it: RSA, 2048 bits. Throws with what is wrong. */
function parseKey(pem: string): KeyObject {
  const key = createPrivateKey(pem);
  if (key.asymmetricKeyType === 'rsa') return key;
  throw new AdviseError(
    'private-key',
    { en: 'it is not an RSA key', zh: '它不是 RSA 密钥' },
    { en: 'Generate a key on the settings page of the app.', zh: '在 App 的设置页生成密钥。' },
  );
}

export async function checkSettings(env: Environment): Promise<Settings> {
  let options: ServerOptions | null = null;
  const environment = await look('environment', both('Environment', '环境变量'), () => {
    try {
      options = readEnv({ ...env, ...PASSING });
      return ok(both('every variable can be read', '所有变量均可读取'));
    } catch (error) {
      return refusal(error);
    }
  });
  let appId: number | null = null;
  const app = await look('app-id', both('App id', 'App ID'), () => {
    try {
      ({ appId } = only(env, 'APP_ID'));
      return ok(both(String(appId), String(appId)));
    } catch (error) {
      return refusal(error);
    }
  });
  let privateKey: string | null = null;
  const key = await look('private-key', both('Private key', '私钥'), () => {
    let pem: string;
    try {
      pem = only(env, 'PRIVATE_KEY', 'PRIVATE_KEY_PATH').privateKey;
    } catch (error) {
      return refusal(error);
    }
    try {
      const bits = parseKey(pem).asymmetricKeyDetails?.modulusLength ?? 0;
      privateKey = pem;
      return ok(both(`RSA, ${bits} bits`, `RSA，${bits} 位`));
    } catch (error) {
      if (error instanceof AdviseError) return refusal(error);
      return bad(
        both('it has the frame of a key, and no key in it can be read', '有密钥的首尾行，但无法解析其内容'),
        both(
          'Copy the whole file GitHub gave, line breaks included, or give base64 of it, or set PRIVATE_KEY_PATH.',
          '请完整复制 GitHub 提供的文件（含换行），或使用其 base64，或设置 PRIVATE_KEY_PATH。',
        ),
      );
    }
  });
  const secret = await look('webhook-secret', both('Webhook secret', 'Webhook 密钥'), () => {
    try {
      only(env, 'WEBHOOK_SECRET');
      only(env, 'WEBHOOK_SECRET_PREVIOUS');
      return ok(
        (env.WEBHOOK_SECRET_PREVIOUS ?? '') === ''
          ? both('set, long enough', '已设置，长度足够')
          : both('set, and the one of before is still accepted', '已设置，旧密钥仍被接受'),
        (env.WEBHOOK_SECRET_PREVIOUS ?? '') === ''
          ? null
          : both('Unset WEBHOOK_SECRET_PREVIOUS once GitHub has the new one.', 'GitHub 更换为新密钥后请取消 WEBHOOK_SECRET_PREVIOUS。'),
      );
    } catch (error) {
      return refusal(error);
    }
  });
  return {
    outcomes: [environment, app, key, secret],
    options,
    credentials: appId === null || privateKey === null ? null : { appId, privateKey },
  };
}
