import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzipSync, gzip } from 'node:zlib';
import { Report } from '../../model/report.ts';
import type { PageContext } from '../../render/html/page.ts';

/** Gzipped, in the store. */
const MAX_BYTES = 4 * 1024 * 1024;
/** As text. */
const MAX_TEXT = 32 * 1024 * 1024;

/** What a page is made of: a report with what was acknowledged, and where it stands. */
export interface PageContent {
  readonly report: Report;
  readonly context: Omit<PageContext, 'leftOut'>;
  readonly leftOut: readonly ('timeline' | 'charts')[];
}

/** The same report, each time with less that a page can do without. */
export function lighter({ report, context, leftOut }: PageContent): PageContent[] {
  const { timeline, ...views } = report.views;
  return [
    { report, context, leftOut },
    ...(timeline === undefined ? [] : [{ report: { ...report, views }, context, leftOut: ['timeline'] as const }]),
    { report: { ...report, views: {} }, context, leftOut: ['charts'] },
  ];
}

/** As it is kept. Equal versions, equal pages. */
export function packPage(content: Omit<PageContent, 'leftOut'>): { readonly version: string; pack(): Promise<Uint8Array | null> } {
  const [full, ...less] = lighter({ ...content, leftOut: [] }) as [PageContent, ...PageContent[]];
  const whole = JSON.stringify(full);
  return {
    version: createHash('sha256').update(whole).digest('base64url').slice(0, 22),
    /** null: even without charts it is too large. */
    async pack() {
      for (const one of [full, ...less]) {
        const text = one === full ? whole : JSON.stringify(one);
        if (text.length > MAX_TEXT) continue;
        const bytes = await promisify(gzip)(text);
        if (bytes.length <= MAX_BYTES) return bytes;
      }
      return null;
    },
  };
}

/** null: another version of the product has kept it. */
export function unpackPage(bytes: Uint8Array): PageContent | null {
  const content = JSON.parse(gunzipSync(bytes, { maxOutputLength: 4 * MAX_TEXT }).toString('utf8')) as PageContent;
  const report = Report.safeParse(content.report);
  return report.success ? { ...content, report: report.data } : null;
}
