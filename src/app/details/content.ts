import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzipSync, gzip } from 'node:zlib';
import type { Lang } from '../../model/lang.ts';
import { Report } from '../../model/report.ts';
import type { PageContext } from '../../render/html/page.ts';
import { type Difference, inOther, textsOf } from '../../report/texts.ts';

/** Gzipped, in the store. */
const MAX_BYTES = 4 * 1024 * 1024;
/** As text. */
const MAX_TEXT = 32 * 1024 * 1024;

/** What a page is made of: a report with what was acknowledged, and where it stands. */
export interface PageContent {
  readonly report: Report;
  /** What it says in the other language; absent where it was made by a version that knew one only. */
  readonly texts?: Difference;
  /** The settings name the language, so the browser is not asked. */
  readonly isLangSaid?: boolean;
  readonly context: Omit<PageContext, 'leftOut' | 'isInBoth'>;
  readonly leftOut: readonly ('timeline' | 'charts')[];
}

/** The same report, each time with less that a page can do without. */
export function lighter({ report, leftOut, ...same }: PageContent): PageContent[] {
  const { timeline, ...views } = report.views;
  return [
    { ...same, report, leftOut },
    ...(timeline === undefined ? [] : [{ ...same, report: { ...report, views }, leftOut: ['timeline'] as const }]),
    { ...same, report: { ...report, views: {} }, leftOut: ['charts'] },
  ];
}

/** As it is kept, with what `other`, the report in the other language, says. Equal versions, equal pages. */
export function packPage(
  content: Omit<PageContent, 'leftOut' | 'texts'>,
  other: Report | null = null,
): { readonly version: string; pack(): Promise<Uint8Array | null> } {
  const [full, ...less] = lighter({ ...content, ...(other === null ? {} : { texts: textsOf(content.report, other) }), leftOut: [] }) as [
    PageContent,
    ...PageContent[],
  ];
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

/** The language of a page: what the reader asks for, else what the settings say, else the browser. */
export interface Wish {
  readonly asked: Lang | null;
  readonly browser: Lang | null;
}

/** The same content in the language that is wished, as far as it is there. */
export function inWished(content: PageContent, { asked, browser }: Wish): PageContent {
  const { report, texts, isLangSaid } = content;
  const lang = asked ?? (isLangSaid === true ? null : browser) ?? report.lang;
  if (lang === report.lang || texts === undefined) return content;
  const other = Report.safeParse(inOther(report, texts));
  return other.success ? { ...content, report: other.data } : content;
}
