import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, gzipSync } from 'node:zlib';
import type { FrontOptions } from '../../github/front.ts';
import type { Logger } from '../../github/log.ts';
import { LANGS, type Lang } from '../../model/lang.ts';
import type { Wish } from './content.ts';
import { createLinkReader, DETAILS_PATH, type OpenedLink } from './link.ts';
import { gonePage, NOTICE_POLICY } from './notices.ts';
import { Busy, createPageRenderer } from './page-renderer.ts';
import type { RenderedPage } from './page-thread.ts';

type Request = Parameters<FrontOptions['middleware']>[0];
type Response = Parameters<FrontOptions['middleware']>[1];

/** What the store says of a page. `content` is null where the version is the one that is known already. */
export type StoredPage = { readonly version: string; readonly content: Uint8Array | null } | null;

export interface DetailsOptions {
  /** Newest first; links of each are honoured. */
  readonly secrets: readonly string[];
  readonly publicUrl: string;
  readonly linkDays: number;
  /** Asks the store, which is on another thread. */
  readonly read: (repoId: number, page: string, known: string | null) => Promise<StoredPage>;
  readonly log: Logger;
  readonly now?: () => number;
}

export interface DetailsServer {
  /** Answers what a link leads to. False: the path is no link of ours, and whoever asked shall not know why. */
  readonly handle: (request: Request, response: Response, path: string) => boolean;
  close(): Promise<void>;
}

/** Rendered pages in memory, gzipped. The store is asked each time whether a page is still there. */
const CACHE_BYTES = 32 * 1024 * 1024;
const CACHE_MS = 10 * 60_000;
const MAX_OPEN = 64;
/** A reader that takes nothing for so long is let go. */
const SEND_TIMEOUT_MS = 60_000;

const COMMON = {
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex, nofollow, noarchive',
  'cross-origin-resource-policy': 'same-origin',
} as const;
/** Whatever else is served under the same name is out of reach of the page, and no other page may hold it in a frame. */
const SERVED = "frame-ancestors 'none'; sandbox allow-scripts allow-downloads allow-modals allow-popups allow-popups-to-escape-sandbox";

const BUSY = 'busy, try again in a few seconds · 繁忙，请稍后重试';

/** The first of our languages in the order a browser gives; null: it speaks neither, or any. */
function languageOf(accepted: string): Lang | null {
  const ranges = accepted
    .slice(0, 1000)
    .split(',')
    .map((range) => {
      const [tag = '', ...params] = range
        .toLowerCase()
        .split(';')
        .map((part) => part.trim());
      const quality = Number(params.find((one) => one.startsWith('q='))?.slice(2) ?? 1);
      return { lang: LANGS.find((lang) => tag === lang || tag.startsWith(`${lang}-`)), quality };
    });
  const known = ranges.filter(({ lang, quality }) => lang !== undefined && quality > 0);
  return known.sort((a, b) => b.quality - a.quality)[0]?.lang ?? null;
}

function wishOf({ url = '', headers }: Request): Wish {
  const [, query = ''] = url.slice(0, 1000).split('?', 2);
  const asked = new URLSearchParams(query).get('lang');
  return { asked: LANGS.find((lang) => lang === asked) ?? null, browser: languageOf(String(headers['accept-language'] ?? '')) };
}

interface Cached extends RenderedPage {
  readonly version: string;
}

export function createDetailsServer(options: DetailsOptions): DetailsServer {
  const { read, log, linkDays, now = Date.now } = options;
  const open = createLinkReader(options.secrets);
  const prefixes = [...new Set([DETAILS_PATH, `${new URL(options.publicUrl).pathname.replace(/\/$/, '')}${DETAILS_PATH}`])];
  const renderer = createPageRenderer();
  const gone: RenderedPage = { html: gzipSync(gonePage(linkDays)), policy: NOTICE_POLICY };
  const cache = new Map<string, Cached>();
  let answering = 0;

  function remember(key: string, page: Cached): void {
    cache.delete(key);
    cache.set(key, page);
    setTimeout(() => {
      if (cache.get(key) === page) cache.delete(key);
    }, CACHE_MS).unref();
    let bytes = 0;
    for (const [other, { html }] of [...cache].reverse()) {
      bytes += html.length;
      if (bytes > CACHE_BYTES) cache.delete(other);
    }
  }

  /** null: there is nothing, or no longer. */
  async function pageOf({ repoId, page }: OpenedLink, wish: Wish): Promise<RenderedPage | null> {
    const key = `${repoId}/${page}/${wish.asked ?? `browser-${wish.browser}`}`;
    const known = cache.get(key) ?? null;
    const stored = await read(repoId, page, known?.version ?? null);
    if (stored === null) {
      cache.delete(key);
      return null;
    }
    if (known !== null && stored.version === known.version) return known;
    if (stored.content === null) throw new Error('the store gave no content of a page that is not known');
    const rendered = await renderer.render(stored.content, wish);
    if (rendered !== null) remember(key, { ...rendered, version: stored.version });
    return rendered;
  }

  async function send(request: Request, response: Response, status: number, { html, policy }: RenderedPage): Promise<void> {
    const isZipped = /(?:^|[,\s])gzip(?:$|[,\s])/i.test(String(request.headers['accept-encoding'] ?? ''));
    response.setTimeout(SEND_TIMEOUT_MS, () => response.destroy());
    response.writeHead(status, {
      ...COMMON,
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': `${policy}; ${SERVED}`,
      'cache-control': status === 200 ? 'private, max-age=60' : 'no-store',
      vary: 'accept-encoding, accept-language',
      ...(isZipped ? { 'content-encoding': 'gzip', 'content-length': html.length } : {}),
    });
    if (isZipped || request.method === 'HEAD') response.end(isZipped ? html : undefined);
    // Piece by piece, as fast as it is taken: whole pages for many readers would be much memory.
    else await pipeline(Readable.from([html]), createGunzip(), response);
  }

  function refuse(response: Response, status: number, text: string, headers: Record<string, string>): void {
    const body = Buffer.from(`${text}\n`);
    response
      .writeHead(status, { ...COMMON, 'content-type': 'text/plain; charset=utf-8', 'content-length': body.length, ...headers })
      .end(body);
  }

  async function answer(request: Request, response: Response, link: OpenedLink): Promise<void> {
    const started = now();
    const done = (status: number): void =>
      log.info({ repository: link.repoId, status, ms: now() - started }, 'a details page was asked for');
    if (answering >= MAX_OPEN) {
      refuse(response, 503, BUSY, { 'retry-after': '5' });
      return done(503);
    }
    answering++;
    response.once('close', () => answering--);
    try {
      const page = link.expiresAt <= now() ? null : await pageOf(link, wishOf(request));
      await send(request, response, page === null ? 410 : 200, page ?? gone);
      done(page === null ? 410 : 200);
    } catch (error) {
      // Who asked has hung up.
      if (response.headersSent) return done(499);
      if (!(error instanceof Busy)) log.error({ err: error, repository: link.repoId }, 'a details page could not be made');
      refuse(response, 503, BUSY, { 'retry-after': '5' });
      done(503);
    }
  }

  return {
    handle(request, response, path) {
      const prefix = prefixes.find((one) => path.startsWith(one));
      const link = prefix === undefined ? null : open(path.slice(prefix.length));
      if (link === null) return false;
      if (request.method !== 'GET' && request.method !== 'HEAD')
        refuse(response, 405, 'use GET', { allow: 'GET, HEAD', connection: 'close' });
      else void answer(request, response, link);
      return true;
    },
    close: () => renderer.close(),
  };
}
