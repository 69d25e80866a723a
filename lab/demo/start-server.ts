import { fork } from 'node:child_process';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import type { LoopbackGitHub } from '../loopback-github/index.ts';
import type { FromServer } from './server.ts';

/** The App while it runs. */
export interface AppServer {
  readonly webhookUrl: string;
  /** The last lines of its log. */
  lastWords(): string;
  /** Set when it ended by itself. */
  hasEnded(): boolean;
  stop(): Promise<void>;
}

const LOG_CHARACTERS = 20_000;
/** A server that does not end within this time is ended. */
const STOP_MS = 20_000;

/** The address of the App stands in its links, so it must be known before it listens. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

/** Starts the App against a GitHub on this machine, with an embedded store in a folder. */
export async function startServer(hub: LoopbackGitHub, dataDir: string): Promise<AppServer> {
  const port = await freePort();
  const env: Record<string, string> = {
    PATH: process.env.PATH ?? '',
    APP_ID: String(hub.app.id),
    PRIVATE_KEY: hub.privateKeyPem,
    WEBHOOK_SECRET: hub.app.webhookSecret,
    GHE_HOST: new URL(hub.apiUrl).host,
    GHE_PROTOCOL: 'http',
    HOST: '127.0.0.1',
    PORT: String(port),
    NPU_ADVISOR_PUBLIC_URL: `http://127.0.0.1:${port}`,
    NPU_ADVISOR_DATA_DIR: dataDir,
    NPU_ADVISOR_ARTIFACT_HOSTS: new URL(hub.blobUrl).host,
    NPU_ADVISOR_DRAIN_S: '2',
    LOG_LEVEL: 'info',
  };
  const child = fork(join(import.meta.dirname, 'server.ts'), { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  let log = '';
  const keep = (text: string): void => {
    log = (log + text).slice(-LOG_CHARACTERS);
  };
  child.stdout?.setEncoding('utf8').on('data', keep);
  child.stderr?.setEncoding('utf8').on('data', keep);
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const lastWords = (): string => log.trimEnd().split('\n').slice(-20).join('\n');
  const webhookUrl = await new Promise<string>((resolve, reject) => {
    child.once('message', (message: FromServer) => {
      if ('webhookUrl' in message) resolve(message.webhookUrl);
      else reject(new Error(`the App did not start: ${message.failed}`));
    });
    child.once('error', reject);
    void ended.then(() => reject(new Error(`the App did not start: ${lastWords()}`)));
  });
  return {
    webhookUrl,
    lastWords,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      const limit = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await ended;
      clearTimeout(limit);
    },
  };
}
