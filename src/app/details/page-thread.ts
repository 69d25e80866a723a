import { parentPort } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { messageOf } from '../../base/errors.ts';
import { blobUrl, publicPath } from '../../render/comment.ts';
import { PAGE_POLICY, renderHtml } from '../../render/html/page.ts';
import { inWished, lighter, type PageContent, unpackPage, type Wish } from './content.ts';

/** The page as it is served: gzipped, with the policy its browser shall hold it to. */
export interface RenderedPage {
  readonly html: Uint8Array;
  readonly policy: string;
}

/** What is kept of a page, and the language it is to be in. */
export interface ToPageThread {
  readonly bytes: Uint8Array;
  readonly wish: Wish;
}

export type FromPageThread = { readonly page: RenderedPage | null } | { readonly failed: string };

/** Of the page as text. */
const MAX_HTML_BYTES = 12 * 1024 * 1024;

function render(content: PageContent): string | null {
  for (const { report, context, leftOut } of lighter(content)) {
    const { htmlBase, sha } = context;
    const places = {
      path: publicPath,
      url: (location: Parameters<typeof blobUrl>[2]) => blobUrl({ htmlBase, report: null }, sha, location),
    };
    const page = renderHtml(report, places, { ...context, leftOut, isInBoth: content.texts !== undefined });
    if (Buffer.byteLength(page) <= MAX_HTML_BYTES) return page;
  }
  return null;
}

/** Makes pages of reports, which hold foreign names, on a thread that has nothing else and may be ended at any time. */
const port = parentPort;
if (port === null) throw new Error('page-thread.ts runs as a worker thread only');
port.on('message', ({ bytes, wish }: ToPageThread) => {
  let answer: FromPageThread;
  try {
    const content = unpackPage(bytes);
    const page = content === null ? null : render(inWished(content, wish));
    answer = { page: page === null ? null : { html: gzipSync(page), policy: PAGE_POLICY } };
  } catch (error) {
    answer = { failed: messageOf(error) };
  }
  port.postMessage(answer);
});
